"""What holds however claims race: a job has one holder, and no job is lost."""

import threading
from datetime import timedelta

from django.utils import timezone

from django_jobqueue.models import Job, JobAttempt
from django_jobqueue.states import JobStatus, SettleOutcome
from tests.claims import LEASES, claim_of, claimed, failure, retry, rows, settled, success, tokens
from tests.factories import JobFactory
from tests.marks import committed, on_postgresql
from tests.threads import Meeting, together

pytestmark = committed
ROUNDS = 25


def claim_until_empty(jobs, size, settle=None):
    """Return a function that claims until nothing is left, and returns what it claimed."""

    def run():
        mine = []
        while found := claimed(size, jobs=jobs):
            mine.extend(found)
            if settle:
                settled([settle(job) for job in found], jobs=jobs)
        return mine

    return run


def test_of_two_claimers_racing_for_one_row_one_wins(jobs):
    meeting = Meeting(2)

    def race():
        wins = []
        for _ in range(ROUNDS):
            if meeting.wait() == 0:
                JobFactory()
            meeting.wait()
            wins.append(claimed(jobs=jobs))
            meeting.wait()
        return wins

    for one, other in zip(*together(race, race), strict=True):
        assert len(one) + len(other) == 1
    assert set(Job.objects.values_list("attempts", flat=True)) == {1}


def test_eight_claimers_share_five_hundred_rows(jobs):
    made = {job.pk for job in JobFactory.create_batch(500)}

    shares = together(*[claim_until_empty(jobs, size) for size in (1, 2, 3, 5, 8, 13, 21, 34)])

    found = [job.pk for share in shares for job in share]
    assert len(found) == len(set(found)) == 500
    assert set(found) == made
    held = {job.pk: job.claim_token for share in shares for job in share}
    assert dict(Job.objects.values_list("pk", "claim_token")) == held


@on_postgresql
def test_a_claimer_never_comes_back_empty_while_there_is_plenty(jobs):
    JobFactory.create_batch(160)
    meeting = Meeting(8)

    def claim():
        found = []
        for _ in range(4):
            meeting.wait()
            found.append(len(claimed(5, jobs=jobs)))
        return found

    assert [sum(counts) for counts in together(*[claim] * 8)] == [20] * 8


def test_claimers_that_settle_run_every_job_once(jobs):
    JobFactory.create_batch(100)

    shares = together(*[claim_until_empty(jobs, 4, settle=success)] * 4)

    assert sum(map(len, shares)) == 100
    assert Job.objects.filter(status=JobStatus.SUCCEEDED, attempts=1).count() == 100


def test_a_job_settled_by_many_at_once_has_one_ending(jobs):
    JobFactory.create_batch(20)
    held = claimed(20, jobs=jobs)

    def end(ending):
        return lambda: settled([ending(job) for job in held], jobs=jobs)

    answers = together(end(success), end(failure), end(retry), end(success))

    endings = {success: "succeeded", failure: "failed", retry: "pending"}
    statuses = dict(Job.objects.values_list("pk", "status"))
    for job in held:
        written = [
            ending
            for ending, answer in zip((success, failure, retry, success), answers, strict=True)
            if answer[job.claim_token] != SettleOutcome.CLAIM_LOST
        ]
        assert len(set(written)) == 1
        assert statuses[job.pk] == endings[written[0]]
    unsuccessful = Job.objects.exclude(status=JobStatus.SUCCEEDED).count()
    assert JobAttempt.objects.count() == unsuccessful


def test_release_and_settle_of_one_claim_do_not_both_happen(jobs):
    JobFactory.create_batch(20)
    held = claimed(20, jobs=jobs)

    outcomes, released = together(
        lambda: settled([success(job) for job in held], jobs=jobs),
        lambda: jobs.release([claim_of(job) for job in held]),
    )

    for job in held:
        was_settled = outcomes[job.claim_token] == SettleOutcome.SUCCEEDED
        was_released = job.claim_token in released
        assert not (was_settled and was_released)
    assert Job.objects.ready().count() == len(released) == JobAttempt.objects.count()


def test_cancel_and_claim_of_one_job_do_not_both_happen(jobs):
    made = JobFactory.create_batch(30)

    cancelled, held = together(lambda: jobs.cancel(made), claim_until_empty(jobs, 3))

    assert not cancelled & {job.pk for job in held}
    assert len(cancelled) + len(held) == 30
    assert Job.objects.filter(status=JobStatus.CANCELLED, attempts=0).count() == len(cancelled)


def test_promoters_and_claimers_lose_no_due_job(jobs):
    JobFactory.create_batch(60, due=True)
    done = threading.Event()

    def promote():
        count = 0
        while some := jobs.promote(limit=7):
            count += some
        return count

    def claim():
        found = []
        while not (done.is_set() and not Job.objects.ready().exists()):
            found += claimed(3, jobs=jobs)
        return found

    def promote_all():
        try:
            return promote() + promote()
        finally:
            done.set()

    promoted, more, held, others = together(promote_all, promote, claim, claim)

    assert promoted + more == len(held) + len(others) == 60


def test_renewals_and_settles_at_once_leave_no_lease_behind(jobs):
    JobFactory.create_batch(20)
    held = claimed(20, jobs=jobs)
    done = threading.Event()

    def renew():
        while not done.is_set():
            jobs.renew([claim_of(job) for job in held])

    def settle():
        try:
            for job in held:
                settled([success(job)], jobs=jobs)
        finally:
            done.set()

    together(renew, settle)

    assert Job.objects.filter(status=JobStatus.SUCCEEDED, lease_expires_at=None).count() == 20


@on_postgresql
def test_a_stale_process_changes_nothing_while_the_live_one_works(jobs):
    JobFactory.create_batch(20)
    stale = claimed(20, jobs=jobs)
    jobs.release([claim_of(job) for job in stale])
    live = claimed(20, jobs=jobs)
    Job.objects.update(lease_expires_at=timezone.now() + timedelta(hours=1))
    before = rows()

    answers = together(
        lambda: settled([failure(job) for job in stale], jobs=jobs),
        lambda: jobs.renew([claim_of(job) for job in stale]),
        lambda: jobs.release([claim_of(job) for job in stale]),
        lambda: jobs.settle_and_claim([success(job) for job in stale], tokens(), LEASES),
    )

    lost = {job.claim_token: SettleOutcome.CLAIM_LOST for job in stale}
    assert answers == [lost, set(), set(), (lost, [])]
    assert rows() == before
    assert len(jobs.renew([claim_of(job) for job in live])) == 20
