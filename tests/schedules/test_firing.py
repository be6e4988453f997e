from datetime import timedelta

import pytest
from django.db import DatabaseError, connection, connections

from django_jobqueue.database.clock import database_now
from django_jobqueue.exceptions import InvalidJob, InvalidSchedule
from django_jobqueue.models import Job, Schedule
from django_jobqueue.schedules.firing import agenda, fire
from tests.schedules.conftest import tick

HOUR = timedelta(hours=1)


def soon(later):
    return database_now(connection) + later


def fired(row):
    """Fire a schedule; return the ticks that got a job, in years before the last one."""
    jobs = fire(Job.objects, row.pk)
    row.refresh_from_db()
    keys = [job.dedup_key.rpartition(f"{row.name}:")[2] for job in jobs]
    back = {tick(number).isoformat(): number for number in range(20)}
    return [back[key] for key in keys]


class TestOneTick:
    def test_it_becomes_one_job(self, make_schedule):
        row = make_schedule(catch_up="once", payload={"a": [1]}, queue="slow", priority=7)

        assert fired(row) == [0]

        job = Job.objects.get()
        assert (job.type, job.queue, job.priority, job.payload) == (
            "test.echo",
            "slow",
            7,
            {"a": [1]},
        )
        assert job.reason == "schedule yearly"
        assert job.scheduled_for is None

    def test_the_row_goes_on_to_the_next(self, make_schedule):
        row = make_schedule(catch_up="once")

        fired(row)

        assert (row.last_tick_at, row.next_tick_at) == (tick(), tick(-1))
        assert fired(row) == []
        assert Job.objects.count() == 1

    def test_a_repeat_of_a_tick_never_doubles_it(self, make_schedule):
        row = make_schedule(catch_up="all")
        fired(row)
        Schedule.objects.update(next_tick_at=tick())
        assert fired(row) == []

        Schedule.objects.update(next_tick_at=tick(), last_tick_at=None)
        fired(row)

        assert Job.objects.count() == 1

    def test_a_longest_name_fits(self, make_schedule):
        row = make_schedule(catch_up="once", name="n" * 200)

        assert fired(row) == [0]


class TestAfterAnAbsence:
    """No worker was there for the last five ticks."""

    @pytest.mark.parametrize(
        ("catch_up", "limit", "ticks"),
        [
            ("once", 10, [0]),
            ("all", 10, [4, 3, 2, 1, 0]),
            ("all", 2, [1, 0]),
        ],
    )
    def test_the_policy_says_which_ticks_get_a_job(self, make_schedule, catch_up, limit, ticks):
        row = make_schedule(ticks=5, catch_up=catch_up, limit=limit)

        assert fired(row) == ticks
        assert row.last_tick_at == tick()
        assert row.next_tick_at == tick(-1)
        assert fired(row) == []

    def test_skip_goes_on_without_a_job(self, make_schedule):
        row = make_schedule(ticks=5, catch_up="skip")

        assert fired(row) == []
        assert (row.last_tick_at, row.next_tick_at) == (None, tick(-1))

    def test_skip_takes_the_tick_that_has_just_come(self, make_schedule):
        row = make_schedule(ticks=5, catch_up="skip", cron="* * * * *")

        assert len(fire(Job.objects, row.pk)) == 1


class TestARowThatDoesNotFire:
    def test_a_new_one_counts_from_now(self, make_schedule):
        row = make_schedule(ticks=0, catch_up="all")

        assert fired(row) == []
        assert (row.last_tick_at, row.next_tick_at) == (None, tick(-1))

    def test_a_paused_one_lets_its_ticks_pass(self, make_schedule):
        row = make_schedule(ticks=5, catch_up="all", paused=True)

        assert fired(row) == []
        assert row.next_tick_at == tick(-1)

        row.paused = False
        row.save()
        assert fired(row) == []

    def test_one_that_is_gone(self, make_schedule):
        row = make_schedule()
        Schedule.objects.all().delete()

        assert fire(Job.objects, row.pk) == []

    @pytest.mark.parametrize(
        ("fields", "words"),
        [
            ({"cron": "61 * * * *"}, "Bad minute"),
            ({"timezone": "Mars/Olympus"}, "timezone is 'Mars/Olympus'"),
            ({"limit": 0}, "limit is 0"),
        ],
    )
    def test_one_that_cannot_be_used_says_why_and_stays(self, make_schedule, fields, words):
        row = make_schedule()
        Schedule.objects.update(**fields)

        with pytest.raises(InvalidSchedule, match=words):
            fire(Job.objects, row.pk)

        assert Schedule.objects.get().next_tick_at == row.next_tick_at


class TestOneTransaction:
    def test_a_job_that_is_refused_leaves_the_tick(self, make_schedule):
        row = make_schedule(catch_up="once")
        Schedule.objects.update(payload=["no object"])

        with pytest.raises(InvalidJob):
            fire(Job.objects, row.pk)

        row.refresh_from_db()
        assert (row.last_tick_at, row.next_tick_at) == (None, tick())
        assert not Job.objects.exists()

    def test_a_failure_of_the_second_job_leaves_no_first(self, make_schedule):
        """Both jobs, the tick, or none of it."""
        row = make_schedule(ticks=2, catch_up="all")
        with (
            a_database_that_refuses_the_newest_tick(),
            pytest.raises(DatabaseError, match="refused by the test"),
        ):
            fire(Job.objects, row.pk)

        row.refresh_from_db()
        assert row.next_tick_at == tick(1)
        assert not Job.objects.exists()
        assert fired(row) == [1, 0]


class a_database_that_refuses_the_newest_tick:  # noqa: N801 (reads as a function)
    def __enter__(self):
        key = f"schedule:yearly:{tick().isoformat()}"
        with connection.cursor() as cursor:
            for statement in REFUSAL[connection.vendor]:
                cursor.execute(statement % {"key": key})

    def __exit__(self, *_):
        with connection.cursor() as cursor:
            for statement in END_OF_REFUSAL[connection.vendor]:
                cursor.execute(statement)


REFUSAL = {
    "postgresql": [
        """
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'refused by the test'; END $$
        """,
        """
        CREATE TRIGGER refuse BEFORE INSERT ON django_jobqueue_job FOR EACH ROW
        WHEN (NEW.dedup_key = '%(key)s') EXECUTE FUNCTION refuse()
        """,
    ],
    "sqlite": [
        """
        CREATE TRIGGER refuse BEFORE INSERT ON django_jobqueue_job
        WHEN NEW.dedup_key = '%(key)s'
        BEGIN SELECT RAISE(ABORT, 'refused by the test'); END
        """,
    ],
}
END_OF_REFUSAL = {
    "postgresql": ["DROP TRIGGER refuse ON django_jobqueue_job", "DROP FUNCTION refuse"],
    "sqlite": ["DROP TRIGGER refuse"],
}


class TestWhatIsDue:
    def test_what_has_come_and_what_is_new_is_looked_at(self, make_schedule):
        new = make_schedule(name="new", ticks=0)
        come = make_schedule(name="come")
        make_schedule(name="later", next_tick_at=soon(2 * HOUR))

        assert set(agenda("default", []).due) == {new.pk, come.pk}

    def test_one_declared_in_code_is_looked_at_where_it_is_declared(self, make_schedule):
        row = make_schedule(declared_in_code=True)

        assert agenda("default", []).due == []
        assert agenda("default", ["yearly"]).due == [row.pk]

    def test_the_next_tick_is_told_in_seconds(self, make_schedule):
        assert agenda("default", []).next_seconds is None
        make_schedule(name="paused", paused=True, next_tick_at=soon(HOUR))
        make_schedule(name="foreign", declared_in_code=True, next_tick_at=soon(HOUR))
        make_schedule(name="come")
        assert agenda("default", []).next_seconds is None

        make_schedule(name="later", next_tick_at=soon(2 * HOUR))

        assert 7100 < agenda("default", []).next_seconds <= 7200


def test_a_row_locked_by_another_worker_is_left_to_it(make_schedule):
    if not connection.features.has_select_for_update_skip_locked:
        pytest.skip("needs SKIP LOCKED")
    row = make_schedule(catch_up="once")
    other = connections.create_connection("default")
    other.set_autocommit(False)
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT 1 FROM django_jobqueue_schedule FOR UPDATE")

        assert fire(Job.objects, row.pk) == []
    finally:
        other.rollback()
        other.close()
    assert fired(row) == [0]


def test_a_site_without_time_zones_stores_its_local_time(make_schedule, settings):
    settings.USE_TZ = False
    settings.TIME_ZONE = "Asia/Kolkata"  # 5:30 ahead of UTC, the year round.
    row = make_schedule(ticks=0, timezone="Asia/Kolkata", catch_up="all")
    naive = tick().replace(tzinfo=None)
    Schedule.objects.update(next_tick_at=naive.replace(year=naive.year - 1))

    jobs = fire(Job.objects, row.pk)

    row.refresh_from_db()
    assert (row.last_tick_at, row.next_tick_at) == (naive, naive.replace(year=naive.year + 1))
    assert [job.dedup_key for job in jobs] == [
        f"schedule:yearly:{naive.year - 2}-12-31T18:30:00+00:00",
        f"schedule:yearly:{naive.year - 1}-12-31T18:30:00+00:00",
    ]
    assert agenda("default", []).due == []
    assert agenda("default", []).next_seconds > 0
