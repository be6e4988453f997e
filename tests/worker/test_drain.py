"""A draining worker does all it can, and then says what it leaves."""

from datetime import timedelta
from uuid import uuid4

from django_jobqueue.models import Job
from django_jobqueue.states import JobStatus
from django_jobqueue.worker.drain import Drain, leftovers
from django_jobqueue.worker.eligibility import Eligibility
from django_jobqueue.worker.pool import PoolEvent
from tests.processes import eventually
from tests.worker.conftest import wait_for


def left():
    return leftovers(Job.objects, Eligibility())


def test_an_empty_queue_is_drained_at_once(drain):
    pool = drain()

    assert pool.outcomes == {}
    assert left() == {}


def test_more_slots_than_jobs_are_drained(drain):
    Job.objects.enqueue("test.echo")

    drain(8)

    assert left() == {}


def test_retries_due_soon_are_waited_for(drain, handler):
    @handler
    def flaky(job):
        if job.attempts < 3:
            raise ValueError

    Job.objects.enqueue("flaky")

    drain(2)

    assert Job.objects.get().status == JobStatus.SUCCEEDED


def test_a_retry_due_much_later_is_not_waited_for(drain, jobqueue):
    jobqueue(RETRY_BASE=3600, RETRY_MAX=3600)
    Job.objects.enqueue("test.fail")

    drain()

    job = Job.objects.get()
    assert (job.status, job.attempts) == (JobStatus.PENDING, 1)
    assert left() == {"scheduled for later": 1}


def test_a_job_scheduled_by_somebody_is_not_waited_for(drain):
    Job.objects.enqueue("test.echo", delay=timedelta(days=1))
    soon = Job.objects.enqueue("test.echo", delay=60)

    drain()

    soon.refresh_from_db()
    assert soon.status == JobStatus.PENDING
    assert left() == {"scheduled for later": 2}


def test_a_retry_that_another_worker_waits_for_is_not_waited_for(drain, jobqueue):
    job = Job.objects.enqueue("test.echo", delay=60)
    Job.objects.filter(pk=job.pk).update(worker="elsewhere:1:1", attempts=1)

    drain()

    assert left() == {"scheduled for later": 1}


def test_a_busy_slot_is_waited_for(pools, meeting):
    job = Job.objects.enqueue("test.meet", meeting.payload)
    pool = pools(2, drain=True)
    pool.start()
    guest = meeting.guest()
    more = Job.objects.enqueue("test.echo")
    eventually(lambda: Job.objects.terminal().filter(pk=more.pk).exists(), "it did not run")

    assert pool.inbox.empty()
    guest.let_go()

    wait_for(pool, PoolEvent.DRAINED)
    job.refresh_from_db()
    assert job.status == JobStatus.SUCCEEDED


def test_work_that_the_last_job_enqueued_is_done_too(drain, handler):
    @handler
    def parent(job):
        Job.objects.enqueue("test.echo")

    Job.objects.enqueue("parent")

    drain(4)

    assert Job.objects.filter(status=JobStatus.SUCCEEDED).count() == 2


def test_what_is_left_is_counted_by_its_reason(drain):
    Job.objects.enqueue("test.echo", delay=3600)
    Job.objects.pause("queue", "asleep")
    Job.objects.pause("type", "test.async")
    Job.objects.enqueue("test.echo", queue="asleep")
    Job.objects.enqueue("test.async")
    Job.objects.enqueue("of.another.deployment")
    Job.objects.enqueue("test.echo", {"who": "me"})
    Job.objects.enqueue("test.elsewhere")
    Job.objects.claim([uuid4()], {"test.elsewhere": timedelta(minutes=1)})

    drain()

    assert left() == {
        "scheduled for later": 1,
        "running elsewhere": 1,
        "paused": 2,
        "of other types or queues": 1,
    }


def test_jobs_of_other_queues_and_types_do_not_hold_the_drain(drain):
    Job.objects.enqueue("test.echo", queue="other")
    Job.objects.enqueue("test.async", queue="mine")
    Job.objects.enqueue("test.echo", queue="mine")

    drain(queues=["mine"], types=["test.echo"])

    terms = Eligibility(["test.echo"], ("mine",))
    assert leftovers(Job.objects, terms) == {"of other types or queues": 2}


class Interrupted(type(Job.objects)):
    """A manager that something happens to when it is asked first."""

    def __init__(self, happening):
        super().__init__()
        self.model = Job
        self.happening = happening

    def on_write_alias(self):
        happening, self.happening = self.happening, lambda: None
        happening()
        return super().on_write_alias()


def test_a_job_claimed_while_the_drain_looks_is_waited_for(pools, meeting):
    pool = pools()
    pool.start()
    eventually(pool._all_idle, "the slot is not idle")

    def a_slot_finds_work():
        Job.objects.enqueue("test.meet", meeting.payload)
        meeting.guest()

    drained = []
    look = Drain(
        Interrupted(a_slot_finds_work),
        pool.eligibility,
        worker_prefix=f"{pool.name}:",
        slots=1,
        claims=lambda: pool._exchange.claims,
        all_idle=pool._all_idle,
        on_drained=lambda: drained.append(pool.busy),
    )

    look()

    assert drained == []


def test_a_draining_pool_without_slots_is_drained_though_work_is_left(pools, recwarn):
    Job.objects.enqueue("test.echo")
    pool = pools(0, drain=True)
    pool.start()

    wait_for(pool, PoolEvent.DRAINED, seconds=5)

    assert recwarn.pop(RuntimeWarning)
    assert left() == {"ready": 1}


def test_a_job_running_elsewhere_does_not_hold_the_drain(pools, drain, meeting):
    Job.objects.enqueue("test.meet", meeting.payload)
    other = pools()
    other.start()
    guest = meeting.guest()

    drain()

    assert left() == {"running elsewhere": 1}
    guest.let_go()
