"""`jobqueue list`."""

from datetime import timedelta

import pytest
from django.core.management.base import OutputWrapper

from django_jobqueue.commandline.listing import HEADINGS, shortened
from django_jobqueue.models import Job
from tests.factories import JobFactory
from tests.managers.rows import claimed, expired, now

pytestmark = pytest.mark.django_db(transaction=True)


def listed(answer):
    """Return the ids in a table or document."""
    return [line.split()[0] for line in answer.lines[1:] if line[0].isalnum() and "-" in line[:9]]


def test_the_newest_come_first_in_an_aligned_table(jobqueue_command):
    first = JobFactory(type="test.a", failed=True)
    second = JobFactory(type="test.longer", scheduled=True, subject_type="order", subject_id="7")

    answer = jobqueue_command("list")

    assert listed(answer) == [str(second.pk), str(first.pk)]
    head, one, two = answer.lines
    assert head.split() == list(HEADINGS)
    assert " in 60 min " in one
    assert one.index("test.longer") == two.index("test.a") == head.index("TYPE")
    assert "scheduled" in one
    assert "order:7" in one
    assert " 1/3 " in two
    assert two.endswith("ValueError")
    assert "as asked" not in answer.text


@pytest.fixture
def rows():
    """One job in each state, by the state's name."""
    return {
        "pending": JobFactory(type="test.a"),
        "scheduled": JobFactory(scheduled=True),
        "running": claimed(),
        "stuck": expired(),
        "succeeded": JobFactory(succeeded=True),
        "failed": JobFactory(failed=True, queue="imports"),
        "cancelled": JobFactory(cancelled=True, subject_type="order", subject_id="a:7"),
    }


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--status", "failed"], ["failed"]),
        (["--status", "scheduled"], ["scheduled"]),
        (["--status", "pending"], ["scheduled", "pending"]),
        (["--status", "stuck"], ["stuck"]),
        (["--status", "running"], ["stuck", "running"]),
        (["--type", "test.a"], ["pending"]),
        (["--queue", "imports"], ["failed"]),
        (["--subject", "order:a:7"], ["cancelled"]),
        (["--queue", "imports", "--type", "test.a"], []),
    ],
)
def test_filters_narrow_it_down(jobqueue_command, rows, options, expected):
    answer = jobqueue_command("list", *options, "--format", "json")

    by_id = {str(job.pk): name for name, job in rows.items()}
    assert sorted(by_id[job["id"]] for job in answer.said["jobs"]) == sorted(expected)


def test_since_goes_by_the_end_of_a_job_that_ended(jobqueue_command):
    old = now() - timedelta(hours=5)
    ended_lately = JobFactory(succeeded=True, created_at=old)
    JobFactory(succeeded=True, created_at=old, finished_at=old)
    JobFactory(created_at=old)
    lately = JobFactory()

    expected = [str(lately.pk), str(ended_lately.pk)]
    assert listed(jobqueue_command("list", "--since", "1h")) == expected
    moment = (now() - timedelta(hours=1)).isoformat()
    assert listed(jobqueue_command("list", "--since", moment)) == expected
    assert len(listed(jobqueue_command("list", "--since", "1d"))) == 4


def test_a_limit_says_that_there_are_more(jobqueue_command):
    for _ in range(3):
        JobFactory()

    answer = jobqueue_command("list", "--limit", "2")

    assert len(listed(answer)) == 2
    assert answer.lines[-1] == "The newest 2 jobs; there are more. See --limit."
    said = jobqueue_command("list", "--limit", "2", "--format", "json").said
    assert (len(said["jobs"]), said["more"]) == (2, True)
    assert jobqueue_command("list", "--limit", "3", "--format", "json").said["more"] is False


def test_no_match_is_said_and_is_no_failure(jobqueue_command):
    answer = jobqueue_command("list", "--type", "test.none")

    assert (answer.text, answer.error) == ("No jobs match.\n", None)


def test_what_a_terminal_would_obey_is_spelt_out(jobqueue_command):
    JobFactory(type="evil\x1b[2J\n\u202egreen")

    answer = jobqueue_command("list")

    assert len(answer.lines) == 2
    assert r"evil\x1b[2J\n\u202egreen" in answer.lines[1]


def test_payload_and_result_are_not_even_read(jobqueue_command, django_assert_max_num_queries):
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    JobFactory(payload={"token": "secret"}, succeeded=True)

    with CaptureQueriesContext(
        connection,
    ) as queries:
        answer = jobqueue_command("list", "--format", "json")

    assert not any('"payload"' in query["sql"] for query in queries)
    assert "secret" not in answer.text


def test_json_has_stable_keys(jobqueue_command):
    job = JobFactory(failed=True)

    (said,) = jobqueue_command("list", "--format", "json").said["jobs"]

    assert said["id"] == str(job.pk)
    assert said["error"] == "ValueError"
    assert said["created_at"] == Job.objects.get().created_at.isoformat()
    assert list(said) == [
        "id",
        "type",
        "queue",
        "status",
        "priority",
        "attempts",
        "max_attempts",
        "rate_limit_hits",
        "subject_type",
        "subject_id",
        "reason",
        "dedup_key",
        "org_id",
        "created_at",
        "ready_at",
        "scheduled_for",
        "started_at",
        "finished_at",
        "lease_expires_at",
        "worker",
        "trace_context",
        "error",
    ]


TYPE = "reports.build-monthly"


@pytest.fixture
def terminal(monkeypatch, jobqueue_command):
    """Run the command at a terminal of so many columns; return its lines."""

    def run(columns, *words):
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr(OutputWrapper, "isatty", lambda stream: True)
        return jobqueue_command("list", *words).lines

    return run


def test_at_eighty_columns_the_type_stays_whole_and_everything_fits(terminal):
    JobFactory(type=TYPE, queue="imports", subject_type="order", subject_id="7", failed=True)
    JobFactory(type=TYPE, scheduled=True)
    expired(TYPE)

    lines = terminal(80)

    assert max(map(len, lines)) <= 80
    assert all(TYPE in line for line in lines[1:])
    assert lines[0].split()[:4] == ["ID", "TYPE", "STATUS", "DUE"]
    assert any(" in 60 min " in line for line in lines)


def test_a_wide_terminal_shows_every_column(terminal):
    JobFactory(type=TYPE, queue="imports", subject_type="order", subject_id="7", failed=True)
    JobFactory(scheduled=True)

    assert terminal(200)[0].split() == list(HEADINGS)


def test_a_shortened_id_names_its_job(terminal, jobqueue_command):
    jobs = [JobFactory(scheduled=True), JobFactory(failed=True)]

    heads = [line.split()[0] for line in terminal(80)[1:]]

    assert all(13 <= len(head) < 36 for head in heads)
    assert [jobqueue_command("show", head).lines[0].split()[-1] for head in heads] == [
        str(job.pk) for job in reversed(jobs)
    ]


def test_ids_are_as_long_as_it_takes_to_tell_them_apart():
    alike = ["019ad8a0-1111-7000-8000-000000000001", "019ad8a0-1111-7001-8000-000000000001"]

    assert shortened(alike) == ["019ad8a0-1111-7000", "019ad8a0-1111-7001"]
    assert shortened(alike[:1]) == ["019ad8a0-1111"]


def test_through_a_pipe_ids_are_whole(jobqueue_command):
    job = JobFactory()

    assert listed(jobqueue_command("list")) == [str(job.pk)]


def states(answer):
    return [line.split()[3] for line in answer.lines[1:]]


def test_a_stuck_job_is_shown_as_stuck(jobqueue_command):
    expired()
    claimed()

    assert states(jobqueue_command("list", "--status", "stuck")) == ["stuck"]
    assert states(jobqueue_command("list", "--status", "running")) == ["running", "stuck"]


def test_a_job_whose_time_has_come_is_due_now(jobqueue_command):
    JobFactory(due=True)

    head, line = jobqueue_command("list").lines
    assert line[head.index("DUE") :].split()[0] == "now"
