"""What a claim finds, wherever it lies and whatever its hints say."""

import random
import threading
from uuid import UUID

import pytest
from django.utils import timezone

from django_jobqueue.database import ClaimRequest, search
from django_jobqueue.hints import Hints, Position
from django_jobqueue.models import Job
from django_jobqueue.states import JobStatus
from tests.claims import LEASE, LEASES, claimed, locked, row, success, tokens
from tests.factories import JobFactory
from tests.marks import committed, on_postgresql
from tests.threads import together

pytestmark = pytest.mark.django_db

A_WINDOW = 72
"""At so many jobs a claim of one looks before it looks elsewhere."""

BOTH = {"test.echo": LEASE, "test.note": LEASE}


def ready(*numbers, **columns):
    """Insert ready jobs with these ids, which stand for their age, and return them."""
    jobs = [JobFactory.build(pk=UUID(int=number), **columns) for number in numbers]
    return Job.objects.bulk_create(jobs)


def foreign(first, count, **columns):
    return ready(*range(first, first + count), type="test.foreign", **columns)


def ages(jobs):
    return [job.pk.int for job in jobs]


def marked(number=1_000_000, priority=0):
    """Hints that begin at an id, as those of a claimer that has gone on for a while."""
    hints = Hints()
    hints.advance(hints.ask_for(LEASES, None), [Position(priority, UUID(int=number))])
    return hints


def along_the_lanes(count=1, leases=LEASES, **options):
    """Claim as a claimer does after a look."""
    request = ClaimRequest(tokens(count), leases, **options)
    return Job.objects._database()._statement([], request, search.LANES, Hints()).jobs


# Behind what is of no use


@pytest.mark.parametrize("count", [1, 16])
def test_jobs_behind_a_window_of_foreign_ones_are_found(jobs, count):
    foreign(1, 300)
    ready(*range(1001, 1021))

    assert ages(claimed(count, jobs=jobs, hints=Hints())) == list(range(1001, 1001 + count))


def test_without_hints_too(jobs):
    foreign(1, 300)
    (job,) = ready(1000)

    assert claimed(jobs=jobs) == [job]


def test_jobs_behind_foreign_ones_of_several_levels_are_found(jobs):
    for priority in range(-3, 3):
        foreign(1000 + priority * 100, 90, priority=priority)
    (last,) = ready(5000, priority=2)
    (first,) = ready(6000, priority=-1)

    assert claimed(3, jobs=jobs, hints=Hints()) == [first, last]


def test_jobs_behind_more_levels_than_are_remembered_are_found(jobs):
    for priority in range(40):
        foreign(1 + priority * 10, 10, priority=priority)
    (job,) = ready(5000, priority=50)
    hints = Hints()

    assert claimed(jobs=jobs, hints=hints) == [job]
    ready(5001, priority=50)
    assert ages(claimed(jobs=jobs, hints=hints)) == [5001]


def test_what_is_short_of_the_asked_is_made_up_from_behind(jobs):
    ready(1, 2)
    foreign(10, 300)
    ready(1001, 1002, 1003)

    assert ages(claimed(4, jobs=jobs, hints=Hints())) == [1, 2, 1001, 1002]


def test_where_all_is_foreign_nothing_is_found(jobs):
    foreign(1, 200)
    hints = Hints()

    assert claimed(4, jobs=jobs, hints=hints) == []
    assert claimed(4, jobs=jobs, hints=hints) == []
    assert Job.objects.filter(status=JobStatus.PENDING).count() == 200


def test_a_settle_goes_with_a_claim_from_behind(jobs):
    (first,) = ready(1)
    (held,) = claimed(jobs=jobs)
    foreign(10, 200)
    ready(1001, 1002)

    outcomes, found = jobs.settle_and_claim([success(held)], tokens(2), LEASES, hints=Hints())

    assert outcomes == {held.claim_token: "succeeded"}
    assert ages(found) == [1001, 1002]
    assert row(first)["status"] == JobStatus.SUCCEEDED


# Before where one looks


def test_a_late_job_is_found_by_a_claim_that_comes_short(jobs):
    hints = marked()
    (job,) = ready(5)

    assert claimed(jobs=jobs, hints=hints) == [job]


def test_a_late_job_is_found_beside_others(jobs):
    hints = marked()
    late, other = ready(5, 1_000_001)

    assert set(claimed(3, jobs=jobs, hints=hints)) == {late, other}


def test_a_late_job_is_found_by_a_look(jobs):
    hints = marked()
    late, _ = ready(5, 1_000_001)
    jobs.look(LEASES, hints=hints)

    assert claimed(jobs=jobs, hints=hints) == [late]


@on_postgresql
def test_a_full_claim_does_not_look_for_late_jobs(django_assert_num_queries):
    hints = marked()
    ready(5, 1_000_001)

    with django_assert_num_queries(1):
        assert ages(claimed(hints=hints)) == [1_000_001]
    assert hints.look_is_due


def test_a_more_urgent_job_is_served_first_though_no_mark_is_there(jobs):
    hints = marked()
    ready(1_000_001)
    (urgent,) = ready(3, priority=-1)

    assert claimed(jobs=jobs, hints=hints) == [urgent]


def test_a_level_between_two_marks_is_served_in_its_turn(jobs):
    hints = Hints({-5: UUID(int=10), 5: UUID(int=10)})
    for priority in (-5, 0, 5):
        ready(20 + priority, priority=priority)

    assert [job.priority for job in claimed(3, jobs=jobs, hints=hints)] == [-5, 0, 5]


def test_hints_are_also_taken_as_a_mapping(jobs):
    ready(5, 20)

    # The claim asks for more than lies behind the mark, and so looks before it too.
    assert set(ages(claimed(2, jobs=jobs, hints={0: UUID(int=10)}))) == {5, 20}


@on_postgresql
def test_a_mapping_says_where_to_begin():
    ready(5, 20)

    assert ages(claimed(hints={0: UUID(int=10)})) == [20]


def test_an_empty_mapping_is_no_hint(jobs):
    ready(5, 20)

    assert ages(claimed(2, jobs=jobs, hints={})) == [5, 20]


def test_a_promotion_lowers_the_hints(jobs):
    hints = marked()
    due = ready(5, scheduled_for=timezone.now())
    ready(1_000_001)

    assert jobs.promote(hints=hints) == 1
    assert claimed(jobs=jobs, hints=hints) == due


@on_postgresql
@pytest.mark.parametrize("more", [{**BOTH}, {"test.note": LEASE}])
def test_hints_are_forgotten_when_another_type_is_asked_for(more):
    hints = marked()
    (job,) = ready(5, type="test.note")
    ready(1_000_001, type="test.note")

    assert claimed(leases=more, hints=hints) == [job]


# Looks


@on_postgresql
def test_a_look_moves_the_marks_past_what_is_foreign(django_assert_num_queries):
    foreign(1, 300, priority=-1)
    foreign(1001, 300)
    ready(2000, 2001)
    hints = Hints()

    assert Job.objects.look(LEASES, hints=hints)
    with django_assert_num_queries(1):
        assert ages(claimed(2, hints=hints)) == [2000, 2001]


@on_postgresql
def test_a_look_that_sees_nothing_moves_the_marks_to_the_end():
    foreign(1, 300)
    foreign(1000, 30, priority=7)
    hints = Hints()

    assert not Job.objects.look(LEASES, hints=hints)
    assert [(span.priority, span.id.int) for span in hints.spans()][1:] == [(0, 300), (7, 1029)]


@on_postgresql
@pytest.mark.parametrize("numbers", [(5,), (5, 1_000_001)])
def test_a_look_lowers_marks(numbers):
    hints = marked()
    ready(*numbers)
    Job.objects.look(LEASES, hints=hints)

    assert hints.spans()[1].id == UUID(int=5)


@on_postgresql
@pytest.mark.parametrize("hints", [Hints(), marked(500), marked(5)])
def test_a_look_raises_no_mark_over_a_job_that_became_ready_meanwhile(monkeypatch, hints):
    ready(1000)
    look = type(Job.objects._database()).look

    def overtaken(self, *args):
        sight = look(self, *args)
        ready(10)
        hints.lower([Position(0, UUID(int=10))])
        return sight

    monkeypatch.setattr(type(Job.objects._database()), "look", overtaken)
    Job.objects.look(LEASES, hints=hints)

    assert ages(claimed(hints=hints)) == [10]


@on_postgresql
def test_a_look_sees_the_first_job_of_every_level_over_all_lanes():
    for queue, first in [("a", 30), ("b", 20), ("c", 40)]:
        ready(first, first + 1, queue=queue)
        ready(first + 5, first + 6, queue=queue, type="test.note")
    ready(120, 130, queue="d", priority=3)
    foreign(1, 5, priority=-2)
    foreign(500, 5, priority=9)
    sight = Job.objects._database().look(BOTH, None, [0, 3, 5])

    assert [(p.priority, p.id.int) for p in sight.takeable] == [(0, 20), (3, 120)]
    assert [(p.priority, p.id.int) for p in sight.passed] == [(-2, 5)]


@on_postgresql
def test_a_late_job_is_found_though_its_lane_never_runs_out_of_more_urgent_ones():
    hints = marked()
    hints.advance(hints.ask_for(LEASES, None), [Position(3, UUID(int=1_000_000))])
    ready(5, priority=3)
    for number in range(1_000_001, 1_000_011):
        ready(number)
        ready(number + 100, priority=3)
        Job.objects.look(LEASES, hints=hints)
        found = claimed(2, hints=hints)
        if 5 in ages(found):
            return
    raise AssertionError("Ten looks did not find it.")


@on_postgresql
def test_a_look_writes_nothing(django_assert_num_queries):
    ready(1, 2)
    before = list(Job.objects.order_by("pk").values())

    with django_assert_num_queries(1):
        Job.objects.look(LEASES, hints=Hints())
    assert list(Job.objects.order_by("pk").values()) == before


@on_postgresql
def test_only_so_many_queries_are_sent_where_nothing_is_found(django_assert_max_num_queries):
    foreign(1, 300)

    with django_assert_max_num_queries(2):
        assert claimed(4, hints=Hints()) == []


@on_postgresql
def test_an_empty_table_is_one_query(django_assert_num_queries):
    with django_assert_num_queries(1):
        assert claimed(4, hints=Hints()) == []


# Lanes


def test_paused_lanes_are_passed_over_and_found_again(jobs):
    ready(*range(1, 101), queue="slow")
    ready(*range(201, 301), type="test.note")
    (job,) = ready(1000)
    hints = Hints()
    jobs.pause("queue", "slow")
    jobs.pause("type", "test.note")

    assert claimed(2, jobs=jobs, leases=BOTH, hints=hints) == [job]
    jobs.resume("type", "test.note")
    assert ages(claimed(jobs=jobs, leases=BOTH, hints=hints)) == [201]
    jobs.resume("queue", "slow")
    jobs.look(BOTH, hints=hints)
    assert ages(claimed(jobs=jobs, leases=BOTH, hints=hints)) == [1]


def test_only_the_queues_asked_for_are_served_also_behind_a_window(jobs):
    ready(*range(1, 101), queue="other")
    ready(501, 503, queue="mail")
    ready(502, queue="reports")
    asked = {"queues": ["mail", "reports"], "hints": Hints()}

    assert ages(claimed(2, jobs=jobs, **asked)) == [501, 502]
    assert ages(claimed(2, jobs=jobs, **asked)) == [503]
    assert claimed(2, jobs=jobs, **asked) == []


@on_postgresql
def test_a_queue_named_twice_is_one_lane():
    ready(*range(1, 101), queue="mail")

    found = along_the_lanes(100, queues=["mail", "mail"])

    assert ages(found) == list(range(1, 101))


def test_asking_for_more_queues_finds_what_lies_before(jobs):
    ready(*range(1, 101), queue="other")
    ready(501, queue="mail")
    hints = Hints()
    claimed(jobs=jobs, hints=hints, queues=["mail"])

    assert ages(claimed(jobs=jobs, hints=hints, queues=["mail", "other"])) == [1]
    assert ages(claimed(jobs=jobs, hints=hints)) == [2]


@on_postgresql
@pytest.mark.parametrize("seed", range(3))
def test_claims_along_the_lanes_come_in_order(seed):
    chance = random.Random(seed)
    places = [
        (chance.randint(-2, 2), number, chance.choice("abcd"), chance.choice(list(BOTH)))
        for number in range(1, 121)
    ]
    for priority, number, queue, job_type in places:
        ready(number, priority=priority, queue=queue, type=job_type)
    foreign(500, 50, priority=-3)
    foreign(600, 50, queue="a")
    found = [along_the_lanes(count, BOTH) for count in (1, 16, 40, 70)]

    taken = [(job.priority, job.pk.int) for jobs in found for job in jobs]
    assert taken == sorted((priority, number) for priority, number, *_ in places)


@on_postgresql
def test_claims_along_the_lanes_heed_pauses_and_queues():
    ready(1, queue="paused")
    ready(2, type="test.note")
    ready(3, queue="other")
    ready(4, queue="mail")
    Job.objects.pause("queue", "paused")
    Job.objects.pause("type", "test.note")

    assert ages(along_the_lanes(9, BOTH, queues=["mail", "paused", "default"])) == [4]
    assert ages(along_the_lanes(9, BOTH)) == [3]


@on_postgresql
def test_jobs_that_do_not_wait_are_in_no_lane():
    ready(1, scheduled_for=timezone.now())
    ready(2, status=JobStatus.CANCELLED)
    claimed_before = ready(3)
    claimed()

    assert row(claimed_before[0])["status"] == JobStatus.RUNNING
    assert along_the_lanes(9) == []
    assert not Job.objects.look(LEASES, hints=Hints())


@on_postgresql
def test_many_lanes_are_one_search():
    for number in range(1, 201):
        ready(number, queue=f"queue {number % 50}", type=f"test.{number % 4}")
    leases = {f"test.{n}": LEASE for n in range(4)}

    assert ages(along_the_lanes(16, leases)) == list(range(1, 17))


# Others at work


@on_postgresql
@committed
def test_what_others_have_locked_is_passed_over(jobs):
    held = ready(*range(1, 11))
    ready(20, 21)

    with locked(*held):
        assert ages(claimed(2, jobs=jobs, hints=Hints())) == [20, 21]


@on_postgresql
@committed
def test_what_was_locked_and_let_go_again_is_found():
    """It lies before the mark by then."""
    hints = Hints()
    held = ready(1, 2)
    ready(20, 21)
    with locked(*held):
        assert ages(claimed(2, hints=hints)) == [20, 21]

    assert ages(claimed(2, hints=hints)) == [1, 2]


@on_postgresql
@committed
@pytest.mark.timeout(90)
def test_many_claimers_lose_nothing_and_take_each_job_once():
    """Each has hints of its own, and jobs of no use to it lie between."""
    ready(*range(0, 4000, 2), type="test.echo")
    foreign(100_000, 200, priority=-1)
    Job.objects.bulk_create(
        JobFactory.build(pk=UUID(int=n), type="test.foreign") for n in range(1, 800, 2)
    )
    done, left, lock = threading.Event(), [2000], threading.Lock()

    def claimer():
        hints, mine = Hints(), []
        while not done.is_set():
            found = claimed(16, hints=hints)
            mine += ages(found)
            with lock:
                left[0] -= len(found)
                if left[0] <= 0:
                    done.set()
            if not found:
                done.wait(0.01)
        return mine

    stopper = threading.Timer(60, done.set)
    stopper.start()
    try:
        taken = [number for mine in together(*[claimer] * 8) for number in mine]
    finally:
        stopper.cancel()

    assert len(taken) == len(set(taken)) == 2000
    assert Job.objects.filter(status=JobStatus.RUNNING, attempts=1).count() == 2000


@on_postgresql
def test_the_search_holds_no_type_or_queue_with_odd_letters_for_another():
    for number, name in enumerate(['a"b', "a\\b", "{a}", "a,b", "NULL", "%s"], 1):
        ready(number, type=name, queue=name)
        assert ages(along_the_lanes(9, {name: LEASE}, queues=[name])) == [number]
