"""The page on Django's Tasks: its examples are a site, which is run; its tables are the code's."""

import json
import os
import secrets
import subprocess
import sys
from importlib.util import find_spec

import pytest
from django.core.management import get_commands, load_command_class

from django_jobqueue.task_backend.options import NAMES
from django_jobqueue.task_backend.results import STATUSES
from tests import databases
from tests.pages import ROOT, example, examples, for_this_django, table_rows

PAGE = ROOT / "docs" / "tasks.md"
SECONDS = 100
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio")
OLD, NEW = "django_tasks_db.DatabaseBackend", "django_jobqueue.backends.JobQueueBackend"

SETTINGS = """
import os
from tests import databases

SECRET_KEY = "only for tests"
USE_TZ = True
ALLOWED_HOSTS = ["testserver"]
INSTALLED_APPS = ["reports", "invoices", "archive", "nightly", "newsletter"]
INSTALLED_APPS = [app for app in INSTALLED_APPS if os.path.isdir(app)]
DATABASES = {"default": databases.settings_of(os.environ["DATABASE_URL"])}
"""

SECOND_DATABASE = """
DATABASES["archive"] = {"ENGINE": "django.db.backends.sqlite3", "NAME": "archive.sqlite3"}
"""


class Site:
    """A site of a test's own, in a folder and in processes."""

    def __init__(self, folder, url):
        self.folder = folder
        self.url = url

    def write(self, files):
        for name, code in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(for_this_django(code))
            if "/" in name:
                (path.parent / "__init__.py").touch()

    def run(self, *arguments):
        """Run Python to its end; return what it printed."""
        more = os.environ.get("PYTHONPATH", "")
        environ = os.environ | {
            "PYTHONPATH": os.pathsep.join(filter(None, [str(self.folder), str(ROOT), more])),
            "DJANGO_SETTINGS_MODULE": "site_settings",
            "DATABASE_URL": self.url,
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=environ,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def manage(self, *arguments):
        return self.run("-m", "django", *arguments)


@pytest.fixture
def site(tmp_path, request):
    """A site on an empty database of the kind that this run is about."""
    if databases.chosen_kind(os.environ) == databases.SQLITE:
        yield Site(tmp_path, f"sqlite:///{tmp_path / 'site.sqlite3'}")
        return
    import psycopg

    server = request.getfixturevalue("database_server")
    name = f"tasks_page_{secrets.token_hex(4)}"
    with psycopg.connect(databases.url_of(server), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        try:
            yield Site(tmp_path, databases.url_of({**server, "NAME": name}))
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def shown(*captions):
    return {name: example(PAGE.name, name) for name in captions}


def test_its_options_are_those_of_the_code():
    assert [row[0] for row in table_rows(PAGE, "Option")] == list(NAMES)


def test_its_statuses_are_those_of_the_code():
    written = {}
    for status, words in table_rows(PAGE, "Status"):
        for job_status in STATUSES:
            if job_status.value in words:
                written[job_status] = status

    assert written == {job: task.value for job, task in STATUSES.items()}


def test_the_options_that_correspond_to_db_worker_exist():
    command = load_command_class(get_commands()["run_jobworker"], "run_jobworker")
    parser = command.create_parser("manage.py", "run_jobworker")
    options = {option for action in parser._actions for option in action.option_strings}
    rows = table_rows(PAGE, "`db_worker`")

    words = " ".join(row[1] for row in rows).replace("`", " ").replace(",", " ").split()
    named = {word for word in words if word.startswith("--")}
    assert named == {"--concurrency", "--queues", "--drain", "--max-jobs", "--database"}
    assert named <= options


def test_its_own_test_passes(site):
    tests = "reports/tests/test_tasks.py"
    site.write({"site_settings.py": SETTINGS + example(PAGE.name, "settings.py")})
    site.write(shown("reports/tasks.py", tests))

    said = site.run(*PYTEST, tests)

    assert f"{example(PAGE.name, tests).count('def test_')} passed" in said


USE = """
import json, sys
import django
django.setup()
from django.db import transaction
from django.test import RequestFactory
from django.tasks import task_backends
from archive import closing
from archive.tasks import store
from invoices.tasks import fetch
from reports import receivers, tasks, views
from django_jobqueue.models import Job

def start():
    asked = RequestFactory().get("/")
    ids = {"built": json.loads(views.start(asked).content)["id"]}
    ids["sent"] = tasks.send.enqueue("ann").id
    ids["first"] = fetch.enqueue(5).id
    ids["again"] = fetch.enqueue(5).id
    ids["other"] = fetch.enqueue(6).id
    ids["stored"] = closing.close(3).id
    try:
        with transaction.atomic(using="archive"):
            store.enqueue(4)
            raise RuntimeError
    except RuntimeError:
        pass
    old = {"args": [1], "kwargs": {}, "backend": "default"}
    Job.objects.enqueue("reports.tasks.build_report", old)
    print(json.dumps(ids))

def look(ids):
    asked = RequestFactory().get("/")
    print(json.dumps({
        "built": json.loads(views.look(asked, ids["built"]).content),
        "sent": tasks.send.get_result(ids["sent"]).return_value,
        "attempts": Job.objects.get(pk=ids["first"]).max_attempts,
        "stored": store.get_result(ids["stored"]).return_value,
        "archived": Job.objects.using("archive").count(),
        "renamed": Job.objects.get(type="reports.tasks.build_report").status,
    }))

start() if len(sys.argv) == 1 else look(json.loads(sys.argv[1]))
"""


def test_its_examples_are_a_site_that_works(site):
    modules = [e.caption for e in examples() if e.page == PAGE.name and e.caption.endswith(".py")]
    apart = ("settings.py", "mysite/old_tasks.py", "reports/tests/test_tasks.py")
    site.write(shown(*(name for name in modules if name not in apart)))
    with (site.folder / "reports" / "tasks.py").open("a") as tasks:
        tasks.write(example(PAGE.name, "reports/tasks.py (a renamed task)"))
    settings = SETTINGS + SECOND_DATABASE + example(PAGE.name, "settings.py")
    settings += example(PAGE.name, "settings.py (several aliases)")
    settings += 'TASKS["default"]["QUEUES"] = ["default", "reports"]\n'
    settings += 'TASKS["default"]["OPTIONS"]["dedup"] = "invoices.dedup.by_number"\n'
    site.write({"site_settings.py": settings, "use.py": USE})
    for alias in ("default", "archive"):
        site.manage("migrate", "--database", alias, "--verbosity", "0")

    ids = json.loads(site.run("use.py"))
    ran = [site.manage("run_jobworker", "--drain", "--database", a) for a in ("default", "archive")]
    found = json.loads(site.run("use.py", json.dumps(ids)))

    assert ids["again"] == ids["first"] != ids["other"]
    assert "5 succeeded" in ran[0]
    assert "1 succeeded" in ran[1]
    assert found == {
        "built": {"value": {"report": 7, "pages": 3}},
        "sent": {"sent_to": "ann", "attempt": 1},
        "attempts": 5,
        "stored": {"stored": 3},
        "archived": 1,
        "renamed": "succeeded",
    }


def test_a_worker_fires_its_schedule_with_the_call(site):
    site.write({"site_settings.py": SETTINGS + example(PAGE.name, "settings.py")})
    site.write(shown("nightly/tasks.py"))
    site.write(
        {
            "nightly/tests/test_nightly.py": """
import pytest
from django_jobqueue.testing import drain, fake_clock, run_schedules

@pytest.mark.django_db
def test_it():
    with fake_clock("2026-01-01T00:00Z") as clock:
        run_schedules()
        clock.move_to("2026-01-02T01:30Z")
        (job,) = [job for job in run_schedules() if job.type == "nightly.tasks.build_nightly"]
        drain(types=[job.type])
    from nightly.tasks import build_nightly  # not sooner: the schedule is found without it

    assert build_nightly.get_result(str(job.pk)).return_value == {"report": 7, "pages": 3}
"""
        }
    )

    said = site.run(*PYTEST, "nightly/tests/test_nightly.py")

    assert "1 passed" in said


MOVING = {
    "newsletter/tasks.py": """
import logging

from django.dispatch import receiver
from django.tasks import task
from django.tasks.signals import task_finished


class Bounced(Exception):
    pass


@task(queue_name="mail", priority=20)
def send(recipient, *, subject="News"):
    if "@" not in recipient:
        raise Bounced(recipient)
    return {"to": recipient, "subject": subject, "tags": ("a", "b")}


@task(takes_context=True)
async def count(context, *recipients):
    return [len(recipients), context.attempt]


@receiver(task_finished)
def note(sender, task_result, **kwargs):
    with open("finished.txt", "a") as file:
        print(task_result.task.name, task_result.status, file=file)
""",
    "newsletter/views.py": """
from django.http import JsonResponse

from newsletter.tasks import Bounced, send


def start(request):
    return JsonResponse({"id": send.enqueue(request.POST["to"], subject="Hello").id})


def look(request, result_id):
    result = send.get_result(result_id)
    answer = {"status": result.status, "args": result.args, "kwargs": result.kwargs}
    if result.errors:
        answer["bounced"] = result.errors[-1].exception_class is Bounced
        answer["traceback"] = "raise Bounced(recipient)" in result.errors[-1].traceback
    else:
        answer["value"] = result.return_value if result.is_finished else None
    answer["attempted"] = bool(result.worker_ids and result.started_at and result.finished_at)
    answer["queue"], answer["priority"] = result.task.queue_name, result.task.priority
    return JsonResponse(answer)
""",
    "site_urls.py": """
from django.urls import path
from newsletter import views
urlpatterns = [path("start/", views.start), path("look/<str:result_id>/", views.look)]
""",
    "use.py": """
import asyncio, json, sys
from datetime import timedelta
import django
django.setup()
from django.test import Client
from django.utils import timezone
from django.tasks import default_task_backend
from newsletter.tasks import count

def start():
    ids = [Client().post("/start/", {"to": to}).json()["id"] for to in ("ann@example.com", "bob")]
    before = timezone.now() - timedelta(minutes=1)
    ids.append(asyncio.run(count.using(run_after=before, priority=-5).aenqueue("ann", "bob")).id)
    print(json.dumps(ids))

def look(mails, counting):
    answers = [Client().get(f"/look/{id}/").json() for id in mails]
    result = default_task_backend.get_result(counting)
    answers.append([result.return_value, result.attempts, result.task.priority, len(result.errors)])
    result.refresh()
    print(json.dumps(answers))

start() if len(sys.argv) == 1 else look(sys.argv[1:3], sys.argv[3])
""",
}

MOVING_SETTINGS = """
ROOT_URLCONF = "site_urls"
INSTALLED_APPS += ["django.contrib.contenttypes", "django_jobqueue"]
from importlib.util import find_spec
if find_spec("django_tasks_db"):
    INSTALLED_APPS.append("django_tasks_db")
"""


@pytest.mark.parametrize(
    ("backend", "worker"),
    [
        pytest.param(
            OLD,
            ["db_worker", "--batch", "--queue-name", "*", "--no-startup-delay"],
            marks=pytest.mark.skipif(
                find_spec("django_tasks_db") is None, reason="django-tasks-db is not installed"
            ),
        ),
        (NEW, ["run_jobworker", "--drain"]),
    ],
    ids=["before", "after"],
)
def test_a_site_of_django_tasks_db_does_the_same_after_one_setting_is_changed(
    site, backend, worker
):
    before = example(PAGE.name, "settings.py (before)")
    assert before.count(OLD) == 1
    assert before.replace(OLD, NEW) == example(PAGE.name, "settings.py (after)")
    site.write(MOVING)
    site.write({"site_settings.py": SETTINGS + MOVING_SETTINGS + before.replace(OLD, backend)})
    site.manage("check")
    site.manage("migrate", "--verbosity", "0")

    ids = json.loads(site.run("use.py"))
    site.manage(*worker)
    good, bad, counted = json.loads(site.run("use.py", *ids))

    common = {"kwargs": {"subject": "Hello"}, "attempted": True, "queue": "mail", "priority": 20}
    value = {"to": "ann@example.com", "subject": "Hello", "tags": ["a", "b"]}
    assert good == {
        **common,
        "status": "SUCCESSFUL",
        "args": ["ann@example.com"],
        "value": value,
    }
    assert bad == {
        **common,
        "status": "FAILED",
        "args": ["bob"],
        "bounced": True,
        "traceback": True,
    }
    assert counted == [[2, 1], 1, -5, 0]
    finished = (site.folder / "finished.txt").read_text().splitlines()
    assert sorted(finished) == ["count SUCCESSFUL", "send FAILED", "send SUCCESSFUL"]
