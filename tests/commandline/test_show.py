"""`jobqueue show`."""

from uuid import UUID

import pytest

from tests.admin.pages import store_deep_payload
from tests.factories import JobAttemptFactory, JobFactory

pytestmark = pytest.mark.django_db(transaction=True)

PAYLOAD = {"name": "visible", "password": "hunter2"}


@pytest.fixture
def job():
    job = JobFactory(failed=True, payload=PAYLOAD, last_error="ValueError: api_key=hunter2 refused")
    JobAttemptFactory(
        job=job, message="api_key=hunter2 refused", traceback="Traceback\n  line\napi_key=hunter2"
    )
    return job


def test_it_tells_what_the_job_is_and_how_attempts_ended(jobqueue_command, job):
    answer = jobqueue_command("show", str(job.pk))

    assert f"{job.pk}" in answer.lines[0]
    assert any(line.startswith("status:") and line.endswith("failed") for line in answer.lines)
    assert any("builtins.ValueError" in line for line in answer.lines)
    assert "hunter2" not in answer.text
    assert "visible" not in answer.text
    assert "Traceback" not in answer.text


def test_payload_and_errors_are_shown_when_asked_for_with_secrets_masked(jobqueue_command, job):
    answer = jobqueue_command("show", str(job.pk), "--payload")

    assert '"name": "visible"' in answer.text
    assert '"password": "********"' in answer.text
    assert "refused" in answer.text
    assert "Traceback" in answer.text
    assert "hunter2" not in answer.text


def test_json_tells_the_same(jobqueue_command, job):
    short = jobqueue_command("show", str(job.pk), "--format", "json").said
    long = jobqueue_command("show", str(job.pk), "--payload", "--format", "json").said

    assert set(long) - set(short) == {"payload", "result", "last_error"}
    assert short["error"] == "ValueError"
    assert [a["exception_class"] for a in short["attempt_history"]] == ["builtins.ValueError"]
    assert set(short["attempt_history"][0]) == {
        "number",
        "outcome",
        "started_at",
        "finished_at",
        "worker",
        "exception_class",
    }
    assert long["payload"] == {"name": "visible", "password": "********"}
    assert "hunter2" not in str(long)


@pytest.mark.parametrize("length", [8, 13, 20, 36])
def test_the_beginning_of_an_id_is_enough(jobqueue_command, length):
    job = JobFactory(id=UUID("0193aaaa-bbbb-7ccc-8ddd-eeeeffff0001"))
    JobFactory(id=UUID("0193aaab-bbbb-7ccc-8ddd-eeeeffff0001"))

    answer = jobqueue_command("show", str(job.pk)[:length].upper(), "--format", "json")

    assert answer.said["id"] == str(job.pk)


def test_a_beginning_of_several_ids_names_them(jobqueue_command):
    ids = [f"0193aaaa-bbbb-7ccc-8ddd-eeeeffff000{number}" for number in range(7)]
    for job_id in ids:
        JobFactory(id=UUID(job_id))

    refusal = jobqueue_command("show", "0193aaaa").refusal

    assert refusal == (
        f"The ids of several jobs begin with 0193aaaa: {', '.join(ids[:5])} and others. Write more."
    )


def test_an_unknown_id_is_named_with_the_remedy(jobqueue_command):
    answer = jobqueue_command("show", "ffff")

    assert answer.refusal == "No job's id begins with ffff. List them: manage.py jobqueue list"
    assert answer.error.returncode == 1


@pytest.mark.parametrize("wrong", ["", "xyz", "-", "0193'; --", "f" * 37])
def test_what_is_no_id_is_misused(jobqueue_command, wrong):
    assert "expected the id of a job" in jobqueue_command("show", "--", wrong).refusal


def test_a_payload_that_is_nested_very_deep_is_told_as_text(jobqueue_command):
    job = JobFactory(payload={})
    store_deep_payload("job", job.pk)

    answer = jobqueue_command("show", str(job.pk), "--payload")
    said = jobqueue_command("show", str(job.pk), "--payload", "--format", "json").said

    assert "not read as JSON:" in answer.text
    assert "[[[[" in said["payload"]
    assert set(said["as_text"]) == {"payload"}


@pytest.mark.parametrize("error", ["swordfish was wrong", "swordfish", "the swordfish: gone"])
@pytest.mark.parametrize("word", ["show", "list"])
def test_an_error_without_a_class_is_told_with_none(jobqueue_command, word, error):
    job = JobFactory(failed=True, last_error=error)

    answer = jobqueue_command(*([word, str(job.pk)] if word == "show" else [word]))

    assert "(of unknown class)" in answer.text
    assert "swordfish" not in answer.text
