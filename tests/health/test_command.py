"""`manage.py jobqueue_health`."""

import argparse
import json
import re
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command, load_command_class

from django_jobqueue import healthfile
from django_jobqueue.health import PROBES
from django_jobqueue.insights import Trouble
from tests.factories import JobFactory
from tests.managers.rows import now
from tests.pages import ROOT, table_rows

pytestmark = pytest.mark.django_db(transaction=True)


def health(*options):
    """Return what the command prints, and the error it ends with, if any."""
    output = StringIO()
    try:
        call_command("jobqueue_health", *options, stdout=output)
    except CommandError as error:
        return output.getvalue(), str(error)
    return output.getvalue(), None


def overdue():
    moment = now() - timedelta(seconds=5000)
    JobFactory(created_at=moment, ready_at=moment)


def test_a_healthy_site_is_told_in_two_lines():
    text, error = health()

    assert error is None
    assert text.splitlines() == ["ready: healthy", "queue: healthy (stuck 0, ended 0, failed 0)"]


def test_the_worker_is_asked_about_once_its_file_is_known(jobqueue, tmp_path):
    jobqueue(HEALTH_FILE=str(tmp_path / "worker"))
    healthfile.write(str(tmp_path / "worker"))

    text, error = health()

    assert error is None
    assert [line.partition(":")[0] for line in text.splitlines()] == ["live", "ready", "queue"]


def test_an_ill_probe_is_an_error_that_names_it():
    overdue()

    text, error = health()

    assert error == "Not healthy: queue."
    assert re.search(r"The oldest due job \(.*\) has waited 5\d\d\d s, over 600 s: no worker", text)


def test_only_the_chosen_probes_are_asked():
    overdue()

    assert health("--ready") == ("ready: healthy\n", None)
    assert health("--live")[1] == "Not healthy: live."


@pytest.mark.parametrize(
    ("options", "healthy"),
    [(["--max-overdue", "9000"], True), (["--max-overdue=4000"], False)],
)
def test_options_override_settings(options, healthy):
    overdue()

    assert (health("--queue", *options)[1] is None) == healthy


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("--max-age=0", "seconds or a timedelta, at least 1 s"),
        ("--max-age=soon", "seconds or a timedelta"),
        ("--max-overdue=nan", "seconds or a timedelta, at least 0 s and finite"),
        ("--max-stuck=1.5", "a whole number from 0"),
        ("--max-failing=50", "a number from 0 to 1"),
        ("--health-file=", "the path of a file"),
    ],
)
def test_an_option_is_held_to_what_its_setting_is(option, expected):
    value = option.partition("=")[2]

    assert f"{value!r}: expected {expected}" in health("--queue", option)[1]


def test_json_has_stable_keys():
    overdue()

    text, error = health("--format", "json", "--queue", "--ready")

    said = json.loads(text)
    assert error == "Not healthy: queue."
    assert said["healthy"] is False
    assert [(p["probe"], p["healthy"]) for p in said["probes"]] == [
        ("ready", True),
        ("queue", False),
    ]
    assert set(said["probes"][1]) == {"probe", "healthy", "problems", "measures"}
    assert set(said["probes"][1]["problems"][0]) == {"code", "text"}


def test_an_unknown_alias_is_named_with_the_known_ones():
    _, error = health("--database", "nowhere")

    assert error == '--database "nowhere" is not in DATABASES. Known are: default.'


def test_a_setting_that_cannot_be_used_is_named(jobqueue):
    jobqueue(HEALTH_MAX_FAILING=50)

    assert "JOBQUEUE['HEALTH_MAX_FAILING'] is 50; expected a number from 0 to 1" in health()[1]


def test_as_a_process_it_exits_with_0_and_1(site, tmp_path):
    healthy = site().manage("jobqueue_health")
    ill = site().manage("jobqueue_health", "--live", "--health-file", str(tmp_path / "none"))

    assert (healthy.returncode, healthy.stderr) == (0, "")
    assert ill.returncode == 1
    assert "no worker runs" in ill.stdout
    assert ill.stderr == "CommandError: Not healthy: live.\n"


def test_the_page_lists_every_option():
    parser = argparse.ArgumentParser()
    load_command_class("django_jobqueue", "jobqueue_health").add_arguments(parser)
    options = {action.option_strings[-1] for action in parser._actions} - {"--help"}

    rows = table_rows(ROOT / "docs" / "health.md", "Option")

    assert {row[0].split()[0] for row in rows} == options


def test_the_page_lists_every_probe():
    rows = table_rows(ROOT / "docs" / "health.md", "Probe")

    assert [row[0] for row in rows] == list(PROBES)


def test_the_page_lists_every_problem():
    code = "".join(file.read_text() for file in (ROOT / "django_jobqueue/health").glob("*.py"))
    given = set(re.findall(r'(?:Problem|unhealthy)\(\s*"([a-z-]+)"', code))
    given |= {trouble.value for trouble in Trouble}
    rows = table_rows(ROOT / "docs" / "health.md", "Code")

    assert {row[0] for row in rows} == given
