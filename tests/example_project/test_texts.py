import importlib.util

import pytest

from tests.example_project.conftest import Site

POST = """
from django.test import Client
client = Client(headers={"host": "localhost"})
for outages in (0, 1, 3):
    answer = client.post("/texts/", {"text": "The cat is on the mat.", "outages": outages})
    print("at:", answer["Location"])
"""
LOOK = """
from django.test import Client
client = Client(headers={"host": "localhost"})
for address in %r:
    print("page:", client.get(address).content.decode())
"""


def run_through_a_worker(site: Site) -> None:
    assert site.manage("migrate").returncode == 0
    posted = site.manage("shell", "-c", POST)
    addresses = [line[4:] for line in posted.stdout.splitlines() if line.startswith("at: ")]
    assert len(addresses) == 3, posted.stderr

    worked = site.manage("run_jobworker", "--drain")

    assert "2 succeeded, 1 failed, 3 retry-scheduled." in worked.stdout, worked.stderr
    looked = site.manage("shell", "-c", LOOK % addresses)
    done, retried, failed = looked.stdout.split("page:")[1:]
    assert "<dt>Language</dt><dd>English</dd>" in done
    assert "<dt>Attempts</dt><dd>2</dd>" in retried
    assert "did not answer attempt 1" in retried
    assert "<code>FAILED</code>" in failed
    assert failed.count("<code>example_project.texts.tasks.DictionaryUnavailable</code>") == 3


def test_the_pages_of_texts_work_under_the_settings_of_the_site(site: Site) -> None:
    done = site.manage("test", "tests.example_project.texts_suite", "--noinput")

    assert done.returncode == 0, done.stderr
    assert "OK" in done.stderr


def test_a_worker_runs_the_task_that_the_page_enqueued(site: Site) -> None:
    run_through_a_worker(site)


def test_a_worker_runs_it_on_postgresql(postgresql_site: Site) -> None:
    run_through_a_worker(postgresql_site)


@pytest.mark.skipif(
    importlib.util.find_spec("django.tasks") is not None, reason="this Django has the framework"
)
def test_without_the_framework_everything_else_works_and_the_page_says_what_is_missing(
    site: Site,
) -> None:
    hidden = site.folder / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text('import sys\nsys.modules["django_tasks"] = None\n')
    environ = {"PYTHONPATH": str(hidden)}

    checked = site.manage("check", **environ)
    assert checked.returncode == 0, checked.stderr
    assert "texts.W001" in checked.stderr
    assert "pip install django-tasks" in checked.stderr

    assert site.manage("migrate", **environ).returncode == 0
    worked = site.manage("run_jobworker", "--drain", **environ)
    assert worked.returncode == 0, worked.stderr

    looked = site.manage("shell", "-c", LOOK % ["/", "/texts/"], **environ)
    start, texts = looked.stdout.split("page:")[1:]
    assert "No documents yet" in start
    assert "pip install django-tasks" in texts
