"""Slots are independent: what one does is no other's business."""

from django_jobqueue.models import Job
from django_jobqueue.states import JobStatus
from django_jobqueue.worker.pool import PoolEvent
from tests.processes import eventually
from tests.worker.conftest import wait_for


def succeeded(**terms):
    return Job.objects.filter(status=JobStatus.SUCCEEDED, **terms).count()


def test_a_slow_job_does_not_hold_the_other_slots(pools, meeting):
    slow = Job.objects.enqueue("test.meet", meeting.payload, priority=-1)
    for _ in range(20):
        Job.objects.enqueue("test.echo")
    pools(2).start()
    guest = meeting.guest()

    eventually(lambda: succeeded(type="test.echo") == 20, "the other slot stood still")

    slow.refresh_from_db()
    assert slow.status == JobStatus.RUNNING
    guest.let_go("done")
    eventually(lambda: succeeded(pk=slow.pk), "the slow job was not settled")


def test_a_slot_does_not_sleep_after_work(pools, jobqueue):
    jobqueue(POLL_INTERVAL=60)
    for _ in range(50):
        Job.objects.enqueue("test.echo")
    pools(1).start()

    eventually(lambda: succeeded() == 50, "fifty jobs did not run in less than one poll interval")


def test_as_many_jobs_run_at_once_as_there_are_slots_and_no_more(pools, meeting):
    for _ in range(5):
        Job.objects.enqueue("test.meet", meeting.payload)
    pool = pools(3)
    pool.start()
    guests = [meeting.guest() for _ in range(3)]

    assert Job.objects.running().count() == 3
    assert pool.busy == 3
    assert meeting.nobody_waits()
    assert set(Job.objects.ready().values_list("attempts", flat=True)) == {0}

    for guest in guests:
        guest.let_go()
    for _ in range(2):
        meeting.guest().let_go()
    eventually(lambda: succeeded() == 5, "not every job succeeded")


def test_no_job_is_claimed_for_a_slot_that_is_not_free(pools, meeting):
    for _ in range(3):
        Job.objects.enqueue("test.meet", meeting.payload)
    pools(1).start()

    for waiting in (2, 1, 0):
        guest = meeting.guest()
        assert Job.objects.running().count() == 1
        assert Job.objects.ready().count() == waiting
        guest.let_go()


def test_each_slot_is_named_on_the_jobs_it_runs(pools, meeting):
    jobs = [Job.objects.enqueue("test.meet", meeting.payload) for _ in range(2)]
    pool = pools(2)
    pool.start()
    for _ in jobs:
        meeting.guest()

    names = set(Job.objects.values_list("worker", flat=True))

    assert names == {f"{pool.name}:1", f"{pool.name}:2"}


def test_a_job_enqueued_while_the_worker_idles_is_found(pools):
    pools(1).start()

    for _ in range(3):
        job = Job.objects.enqueue("test.echo")
        eventually(lambda job=job: succeeded(pk=job.pk), "an idle worker did not see the job")


def test_a_handler_may_enqueue_the_next_job(drain, handler):
    @handler
    def chain(job):
        if job.payload["left"]:
            Job.objects.enqueue("chain", {"left": job.payload["left"] - 1})

    Job.objects.enqueue("chain", {"left": 5})

    drain()

    assert succeeded(type="chain") == 6


def test_the_most_jobs_are_exact_with_several_slots(pools, notebook):
    for _ in range(20):
        Job.objects.enqueue("test.note", notebook.payload)
    pool = pools(4, max_jobs=7)
    pool.start()
    wait_for(pool, PoolEvent.EXHAUSTED)
    pool.finish()
    wait_for(pool, PoolEvent.ENDED)
    pool.stop()

    assert len(notebook.ids()) == 7
    assert succeeded() == 7
    assert set(Job.objects.ready().values_list("attempts", flat=True)) == {0}


def test_the_jobs_in_hand_are_finished_when_the_most_jobs_are_claimed(pools, meeting):
    for _ in range(3):
        Job.objects.enqueue("test.meet", meeting.payload)
    pool = pools(3, max_jobs=2)
    pool.start()
    guests = [meeting.guest() for _ in range(2)]
    wait_for(pool, PoolEvent.EXHAUSTED)
    pool.finish()

    for guest in guests:
        guest.let_go()
    wait_for(pool, PoolEvent.ENDED)

    assert pool.stop() == 0
    assert succeeded() == 2
    assert Job.objects.ready().count() == 1


def test_only_the_queues_asked_for_are_claimed(drain):
    asked = [Job.objects.enqueue("test.echo", queue=queue) for queue in ("a", "b")]
    other = Job.objects.enqueue("test.echo", queue="c", priority=-5)

    drain(queues=["a", "b"])

    assert {job.pk for job in asked} == set(
        Job.objects.filter(status=JobStatus.SUCCEEDED).values_list("pk", flat=True)
    )
    other.refresh_from_db()
    assert (other.status, other.attempts) == (JobStatus.PENDING, 0)


def test_only_the_types_asked_for_are_claimed(drain):
    Job.objects.enqueue("test.echo")
    Job.objects.enqueue("test.async", priority=-5)

    drain(types=["test.echo"])

    assert Job.objects.get(type="test.echo").status == JobStatus.SUCCEEDED
    assert Job.objects.get(type="test.async").status == JobStatus.PENDING


def test_paused_types_and_queues_are_skipped_until_they_are_resumed(pools, drain):
    paused = [Job.objects.enqueue("test.async"), Job.objects.enqueue("test.echo", queue="slow")]
    Job.objects.pause("type", "test.async")
    Job.objects.pause("queue", "slow")
    Job.objects.enqueue("test.echo")

    drain()

    assert succeeded() == 1
    Job.objects.resume("type", "test.async")
    Job.objects.resume("queue", "slow")
    drain()
    assert succeeded(pk__in=[job.pk for job in paused]) == 2


def test_two_pools_of_one_process_share_the_work(pools, notebook):
    jobs = [Job.objects.enqueue("test.note", notebook.payload) for _ in range(60)]
    both = [pools(2), pools(2)]
    for pool in both:
        pool.start()

    eventually(lambda: succeeded() == 60, "not every job succeeded")

    assert sorted(notebook.ids()) == sorted(str(job.pk) for job in jobs)
