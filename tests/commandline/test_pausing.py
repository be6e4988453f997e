"""`jobqueue pause` and `resume`."""

import pytest

from django_jobqueue.models import QueueControl
from tests.factories import JobFactory

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("kind", ["queue", "type"])
def test_a_pause_lasts_until_the_resume(jobqueue_command, kind):
    JobFactory(**{kind: "imports"})

    paused = jobqueue_command("pause", kind, "imports", "--reason", "they are down")
    control = QueueControl.objects.get()
    again = jobqueue_command("pause", kind, "imports")
    resumed = jobqueue_command("resume", kind, "imports")

    assert (control.kind, control.name, control.reason) == (kind, "imports", "they are down")
    assert paused.text == f"The {kind} imports is paused; jobs that run finish.\n"
    assert (again.text, again.error) == (f"The {kind} imports was paused already.\n", None)
    assert resumed.text == f"The {kind} imports is resumed.\n"
    assert not QueueControl.objects.exists()


def test_json_says_whether_anything_changed(jobqueue_command):
    words = ["queue", "imports", "--format", "json"]

    said = [jobqueue_command("pause", *words).said for _ in range(2)]

    assert said[0] == {"kind": "queue", "name": "imports", "changed": True}
    assert said[1]["changed"] is False
    assert jobqueue_command("resume", *words).said["changed"] is True


def test_a_name_that_no_job_has_is_paused_and_doubted(jobqueue_command):
    answer = jobqueue_command("pause", "queue", "importz")

    assert "No job in the table has the queue importz. Is it spelt right?" in answer.text
    assert QueueControl.objects.filter(name="importz").exists()


def test_to_resume_what_is_not_paused_names_what_is(jobqueue_command):
    assert "Paused: nothing." in jobqueue_command("resume", "queue", "imports").refusal
    jobqueue_command("pause", "queue", "imports")

    answer = jobqueue_command("resume", "type", "imports")

    assert answer.refusal == "The type imports is not paused. Paused: queue imports."
    assert answer.error.returncode == 1


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["queue", "x" * 101], "The queue has 101 characters; expected 1 to 100"),
        (["type", "x" * 201], "The type has 201 characters; expected 1 to 200"),
        (["queue", ""], "The queue has 0 characters"),
        (["queue", "a\0b"], "no NUL"),
        (["queue", "a", "--reason", "x" * 201], "The reason has 201 characters"),
    ],
)
def test_what_no_column_holds_is_refused(jobqueue_command, words, complaint):
    assert complaint in jobqueue_command("pause", *words).refusal
    assert not QueueControl.objects.exists()
