import threading
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.db import DatabaseError
from django.test.utils import override_settings

from django_jobqueue.models import Job
from django_jobqueue.signals import job_settled
from django_jobqueue.states import JobStatus
from django_jobqueue.worker import reaper as module
from django_jobqueue.worker.housekeeping import Housekeeping
from django_jobqueue.worker.reaper import Reading, Reaper, Watch
from tests.managers.rows import LEASE, claimed, expired, now

QUIET = 31.0
"""A third of the lease, and a second."""

START = datetime(2026, 11, 1, tzinfo=UTC)


class Clocks:
    """A monotonic clock and a database's, which a test moves together or apart."""

    def __init__(self):
        self.monotonic = 1000.0
        self.database = START

    def pass_by(self, seconds, *, database=None):
        self.monotonic += seconds
        self.database += timedelta(seconds=seconds if database is None else database)

    def reading(self, *leases):
        leases = [timedelta(seconds=lease) for lease in leases] or [LEASE]
        return Reading(self.database, (min(leases), max(leases)))


@pytest.fixture
def clocks():
    return Clocks()


@pytest.fixture
def watch(clocks):
    return Watch(lambda: clocks.monotonic)


def look(watch, clocks, *leases, pause=30.0):
    """Take one reading on time; return for how long it was quiet."""
    watch.begin()
    quiet = watch.seen(clocks.reading(*leases))
    watch.end(pause)
    return quiet


class TestWatch:
    def test_it_begins_with_the_first_reading(self, watch, clocks):
        clocks.pass_by(1000)

        assert look(watch, clocks) == 0.0

    def test_it_grows_while_nothing_happens(self, watch, clocks):
        quiet = [look(watch, clocks)]
        for _ in range(3):
            clocks.pass_by(30)
            quiet.append(look(watch, clocks))

        assert quiet == [0.0, 30.0, 60.0, 90.0]

    def test_an_error_starts_it_again(self, watch, clocks):
        look(watch, clocks)
        clocks.pass_by(30)
        watch.restart()

        assert look(watch, clocks) == 0.0

    @pytest.mark.parametrize(("late", "quiet"), [(4.9, 34.9), (5.1, 0.0)])
    def test_a_pass_that_comes_late_starts_it_again(self, watch, clocks, late, quiet):
        look(watch, clocks)
        clocks.pass_by(30 + late)

        assert look(watch, clocks) == pytest.approx(quiet)

    @pytest.mark.parametrize(("slow", "quiet"), [(4.9, 34.9), (5.1, 0.0)])
    def test_a_slow_reading_starts_it_again(self, watch, clocks, slow, quiet):
        look(watch, clocks)
        clocks.pass_by(30)
        watch.begin()
        clocks.pass_by(slow)

        assert watch.seen(clocks.reading()) == pytest.approx(quiet)

    @pytest.mark.parametrize(("slow", "quiet"), [(4.9, 34.9), (5.1, 0.0)])
    def test_a_slow_write_starts_it_again(self, watch, clocks, slow, quiet):
        watch.begin()
        watch.seen(clocks.reading())
        clocks.pass_by(slow)
        watch.end(30)
        clocks.pass_by(30)

        assert look(watch, clocks) == pytest.approx(quiet)

    @pytest.mark.parametrize(
        ("ahead", "quiet"), [(4.9, 30.0), (5.1, 0.0), (-4.9, 30.0), (-5.1, 0.0), (600.0, 0.0)]
    )
    def test_clocks_that_drift_apart_start_it_again(self, watch, clocks, ahead, quiet):
        look(watch, clocks)
        clocks.pass_by(30, database=30 + ahead)

        assert look(watch, clocks) == pytest.approx(quiet)

    def test_a_slow_drift_adds_up(self, watch, clocks):
        quiet = [look(watch, clocks)]
        for _ in range(3):
            clocks.pass_by(30, database=32)
            quiet.append(look(watch, clocks))

        assert quiet == [0.0, 30.0, 60.0, 0.0]

    def test_a_worker_whose_clock_is_wrong_but_steady_is_not_disturbed(self, watch, clocks):
        clocks.database -= timedelta(minutes=10)
        look(watch, clocks)
        clocks.pass_by(30)

        assert look(watch, clocks) == 30.0

    def test_a_gap_in_which_a_live_claim_could_expire_unseen_starts_it_again(self, watch, clocks):
        look(watch, clocks, 6)
        clocks.pass_by(2.9)
        assert look(watch, clocks, 6) == pytest.approx(2.9)

        clocks.pass_by(3.1)
        assert look(watch, clocks, 6) == 0.0

    def test_a_gap_counts_by_the_shortest_lease_that_runs_now(self, watch, clocks):
        look(watch, clocks, 90)
        clocks.pass_by(30)

        assert look(watch, clocks, 90, 6) == 0.0


@pytest.mark.parametrize(
    ("leases", "watched", "following"),
    [((90, 90), 31, 30), ((6, 90), 31, 2), ((90, 7200), 61, 30), ((7200, 7200), 61, 60)],
)
def test_the_longest_lease_makes_the_watch_and_the_shortest_the_next_reading(
    leases, watched, following
):
    reading = Clocks().reading(*leases)

    assert (reading.watch_seconds, reading.next_seconds) == (watched, following)


def test_without_running_jobs_the_watch_is_its_margin():
    reading = Reading(START, None)

    assert (reading.watch_seconds, reading.next_seconds) == (1.0, float("inf"))


class SteeredManager(type(Job.objects)):
    """The manager of jobs, but for the clock that a reading takes: the test's."""

    def __init__(self, clocks):
        super().__init__()
        self.model, self.clocks = Job, clocks

    def now(self):
        return self.clocks.database


@pytest.fixture
def make(clocks):
    """Make a reaper that lives by the test's clocks, which begin at the real time."""
    clocks.database = Job.objects.now()

    def reaper(**options):
        arguments = {
            "interval": timedelta(seconds=30),
            "stuck_threshold": timedelta(minutes=30),
            "max_attempts": 3,
            "clock": lambda: clocks.monotonic,
        }
        return Reaper(SteeredManager(clocks), **(arguments | options))

    return reaper


@pytest.fixture
def follow(clocks):
    """Call a chore whenever it wants to be called, while the clocks go on for some seconds."""

    def follow(chore, seconds):
        end = clocks.monotonic + seconds
        while (left := end - clocks.monotonic) > 0:
            clocks.pass_by(min(chore(), left))

    return follow


def is_running(job):
    job.refresh_from_db()
    return job.status == JobStatus.RUNNING


@pytest.mark.django_db
class TestReaper:
    def test_it_writes_only_after_a_quiet_watch(self, make, follow):
        job = expired()
        chore = make()

        follow(chore, QUIET)
        assert is_running(job)

        follow(chore, 0.1)
        assert not is_running(job)

    def test_it_comes_again_after_each_interval(self, make, follow):
        chore = make(interval=timedelta(seconds=20))
        follow(chore, 35)  # Nothing runs, so the first pass comes after a second.
        job = expired()

        follow(chore, 5)
        assert is_running(job)
        follow(chore, 1.1)
        assert not is_running(job)

    def test_a_claim_that_is_renewed_during_the_watch_is_kept(self, make, follow):
        job = expired()
        chore = make()
        follow(chore, 25)
        Job.objects.renew([job.claim])

        follow(chore, 60)

        assert is_running(job)

    def test_a_call_ahead_of_time_asks_nothing(self, make, clocks, django_assert_num_queries):
        chore = make()
        pause = chore()
        clocks.pass_by(pause / 2)

        with django_assert_num_queries(0):
            assert chore() == pytest.approx(pause / 2)

    def test_a_database_error_starts_the_watch_again_and_is_passed_on(
        self, make, follow, monkeypatch
    ):
        job = expired()
        chore = make()
        follow(chore, QUIET - 1)
        with monkeypatch.context() as away:
            away.setattr(SteeredManager, "now", fail)
            with pytest.raises(DatabaseError):
                follow(chore, 5)

        follow(chore, QUIET)
        assert is_running(job)
        follow(chore, 0.1)
        assert not is_running(job)

    def test_after_worker_and_database_stood_still_together_renewals_come_first(
        self, make, follow, clocks
    ):
        chore = make()
        clocks.database -= timedelta(minutes=10)
        job = claimed(lease_expires_at=clocks.database + LEASE)
        follow(chore, 40)
        clocks.pass_by(180)

        follow(chore, 25)
        Job.objects.filter(pk=job.pk).update(lease_expires_at=clocks.database + LEASE)
        follow(chore, 60)

        assert is_running(job)

    def test_a_lease_that_ran_out_since_the_reading_is_kept(self, make, follow, clocks):
        job = claimed(lease_expires_at=now() - timedelta(seconds=1))
        chore = make()
        clocks.database -= timedelta(seconds=60)

        follow(chore, QUIET + 5)

        assert is_running(job)

    def test_each_job_is_logged_once(self, make, follow, caplog):
        spent, left = expired(max_attempts=1), expired()

        follow(make(), 100)

        lines = [record for record in caplog.records if record.name == module.__name__]
        texts = {record.getMessage() for record in lines if record.levelname == "WARNING"}
        assert len(lines) == len(texts) == 2
        assert any(str(spent.pk) in text and "failed" in text for text in texts)
        assert any(str(left.pk) in text and "waits again" in text for text in texts)

    def test_it_sends_job_settled_for_failed_jobs_and_tells_of_the_others(self, make, follow):
        spent, left = expired(max_attempts=1), expired()
        events, requeued = [], []

        def note(sender, event, **kwargs):
            status = Job.objects.get(pk=event.job_id).status
            events.append((event.job_id, event.status, status))

        job_settled.connect(note)
        try:
            follow(make(on_requeued=requeued.extend), 100)
        finally:
            job_settled.disconnect(note)

        assert events == [(spent.pk, JobStatus.FAILED, JobStatus.FAILED)]
        assert [reaped.job_id for reaped in requeued] == [left.pk]

    def test_a_full_batch_is_followed_at_once_by_the_next(self, make, follow):
        for _ in range(5):
            expired()

        follow(make(batch_size=2), QUIET + 0.1)

        assert not Job.objects.running().exists()

    @override_settings(JOBQUEUE={"REAPER_INTERVAL": 7, "STUCK_THRESHOLD": 60, "MAX_ATTEMPTS": 1})
    def test_the_site_s_settings_describe_it(self, clocks, follow):
        clocks.database = now()
        minutes = timedelta(minutes=2)
        forgotten = claimed(lease_expires_at=None, started_at=now() - minutes)
        chore = Reaper.from_settings(
            SteeredManager(clocks), on_requeued=fail, clock=lambda: clocks.monotonic
        )

        follow(chore, QUIET + 0.1)

        assert not is_running(forgotten)
        assert forgotten.status == JobStatus.FAILED
        assert chore() == pytest.approx(6.9)

    def test_a_job_of_a_type_that_nobody_here_knows_is_failed_by_its_own_budget(self, make, follow):
        job = Job.objects.enqueue("another.deployment.s")
        Job.objects.claim([uuid4()], {job.type: LEASE}, max_attempts={job.type: 1})
        chore = make()

        follow(chore, 150)  # Its lease runs out, and no one renews it.

        job.refresh_from_db()
        assert (job.status, job.attempts) == (JobStatus.FAILED, 1)


@pytest.mark.django_db(transaction=True)
def test_it_runs_as_a_chore_of_housekeeping():
    job = expired(lease_seconds=0.3)
    done = threading.Event()
    chore = Reaper(
        Job.objects,
        interval=timedelta(seconds=0.1),
        stuck_threshold=timedelta(minutes=30),
        max_attempts=3,
        on_requeued=lambda _: done.set(),
    )
    housekeeping = Housekeeping([chore], "default")

    housekeeping.start()
    try:
        assert done.wait(20)
    finally:
        housekeeping.shut_down()
        housekeeping.join(20)

    assert not is_running(job)


def fail(*args):
    raise DatabaseError("The database is away.")
