"""Where a claimer begins to look: marks save work, and hide nothing for good."""

from itertools import pairwise
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_jobqueue import hints as module
from django_jobqueue.hints import (
    ABOVE_EVERY_PRIORITY,
    LONGEST_PAUSE_SECONDS,
    LOOK_SECONDS,
    LOOK_SHARE,
    LOWEST_ID,
    LOWEST_PRIORITY,
    MOST_LEVELS,
    Hints,
    Position,
    Sight,
    Span,
    wants_more,
)

ECHO = ["test.echo"]


def at(number, priority=0):
    return Position(priority, UUID(int=number))


def covers(hints, position):
    """Whether a search by these hints comes past a place in the order of claims."""
    return any(
        (span.priority, span.id) <= position and position.priority < span.until
        for span in hints.spans()
    )


def marks(hints):
    """The marks, as their spans show them."""
    return {span.priority: span.id.int for span in hints.spans() if span.id != LOWEST_ID}


def raised(*claimed):
    """Hints that saw these places being claimed."""
    hints = Hints()
    hints.advance(hints.ask_for(ECHO, None), claimed)
    return hints


class Clock:
    """Stands in for the module `time`: stands still until it is told to go on."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


# Spans


def test_without_marks_everything_is_searched():
    assert Hints().spans() == [Span(LOWEST_PRIORITY, LOWEST_ID, ABOVE_EVERY_PRIORITY)]


def test_spans_come_in_the_order_of_claims_and_cover_the_levels_between():
    hints = Hints({5: UUID(int=50), -3: UUID(int=30)})

    assert hints.spans() == [
        Span(LOWEST_PRIORITY, LOWEST_ID, -3),
        Span(-3, UUID(int=30), 5),
        Span(5, UUID(int=50), ABOVE_EVERY_PRIORITY),
    ]
    assert covers(hints, at(1, priority=-4))
    assert covers(hints, at(1, priority=0))
    assert covers(hints, at(1, priority=6))
    assert not covers(hints, at(29, priority=-3))
    assert not covers(hints, at(49, priority=5))


def test_a_mark_at_the_most_urgent_level_leaves_no_span_before_it():
    hints = Hints({LOWEST_PRIORITY: UUID(int=7)})

    assert hints.spans() == [Span(LOWEST_PRIORITY, UUID(int=7), ABOVE_EVERY_PRIORITY)]


def test_the_bounds_hold_every_priority_that_a_row_can_have():
    assert covers(Hints(), Position(-(2**15), LOWEST_ID))
    assert covers(Hints(), Position(2**15 - 1, UUID(int=2**128 - 1)))


# Raising and lowering


def test_a_claim_raises_the_mark_to_the_last_job_of_each_level():
    hints = raised(at(3), at(9), at(4, priority=2), at(6))

    assert marks(hints) == {0: 9, 2: 4}
    assert hints.any


def test_a_mark_never_goes_down_by_a_claim():
    hints = raised(at(9))
    hints.advance(hints.ask_for(ECHO, None), [at(3)])

    assert marks(hints) == {0: 9}


def test_a_job_that_became_ready_lowers_the_mark_of_its_level():
    hints = raised(at(9), at(9, priority=1))
    hints.lower([at(4), at(20, priority=1), at(1, priority=7)])

    assert marks(hints) == {0: 4, 1: 9}


def test_a_ticket_from_before_a_lowering_is_void():
    hints = raised(at(9))
    ticket = hints.ask_for(ECHO, None)
    hints.lower([at(4)])
    hints.advance(ticket, [at(12)])

    assert marks(hints) == {0: 4}
    hints.advance(hints.ask_for(ECHO, None), [at(12)])
    assert marks(hints) == {0: 12}


@pytest.mark.parametrize("hints", [Hints(), raised(at(3))])
def test_a_ticket_is_void_too_where_no_mark_had_to_go_down(hints):
    """The claim under way may not have seen that job, and claimed others behind it."""
    ticket = hints.ask_for(ECHO, None)
    hints.lower([at(10)])
    hints.advance(ticket, [at(12)])

    assert covers(hints, at(10))


def test_a_look_hides_no_job_that_became_ready_meanwhile_where_there_was_no_mark():
    hints = Hints()
    ticket = hints.ask_for(ECHO, None)
    hints.lower([at(10)])
    hints.saw(ticket, Sight((at(60),)), 0.0)

    assert covers(hints, at(10))


def test_forgetting_searches_everything_and_voids_tickets():
    hints = raised(at(9), at(4, priority=1))
    ticket = hints.ask_for(ECHO, None)
    hints.forget()
    hints.advance(ticket, [at(12)])

    assert not hints.any
    assert hints.spans() == Hints().spans()


def test_only_so_many_levels_are_remembered_and_those_used_last_stay():
    hints = raised(*(at(1, priority=level) for level in range(MOST_LEVELS)))
    hints.advance(hints.ask_for(ECHO, None), [at(2, priority=0)])
    hints.advance(hints.ask_for(ECHO, None), [at(5, priority=-9), at(5, priority=99)])

    assert len(marks(hints)) == MOST_LEVELS
    assert {0, -9, 99} <= set(marks(hints))
    assert covers(hints, at(1, priority=1))
    assert covers(hints, at(0, priority=2))


# What is asked for


@pytest.mark.parametrize(
    ("wanted_types", "wanted_queues", "more"),
    [
        ({"a", "b"}, {"mail", "slow"}, False),
        ({"a"}, {"mail", "slow"}, False),
        ({"a", "b"}, {"mail"}, False),
        ({"a", "c"}, {"mail", "slow"}, True),
        ({"a", "b"}, {"mail", "new"}, True),
        ({"a", "b"}, None, True),
    ],
)
def test_what_is_wanted_is_more_than_was_known(wanted_types, wanted_queues, more):
    known = frozenset({"a", "b"}), frozenset({"mail", "slow"})
    queues = None if wanted_queues is None else frozenset(wanted_queues)

    assert wants_more(known, (frozenset(wanted_types), queues)) is more


def test_some_queues_are_not_more_than_all():
    assert not wants_more((frozenset("a"), None), (frozenset("a"), frozenset({"mail"})))


def test_asking_for_more_forgets_every_mark():
    hints = raised(at(9))
    hints.ask_for([*ECHO, "test.late"], None)

    assert not hints.any


def test_asking_for_less_and_then_for_the_same_as_before_forgets_too():
    """Between the two, marks were raised past jobs that are wanted again."""
    hints = Hints()
    hints.ask_for(["a", "b"], None)
    hints.advance(hints.ask_for(["a"], None), [at(9)])
    assert hints.any

    hints.ask_for(["a", "b"], None)
    assert not hints.any


def test_asking_for_more_voids_a_claim_under_way():
    hints = Hints()
    ticket = hints.ask_for(["a"], None)
    hints.ask_for(["a", "b"], None)
    hints.advance(ticket, [at(9)])

    assert not hints.any


# Looks


def test_a_look_moves_the_marks_to_what_may_be_taken():
    hints = raised(at(50), at(50, priority=3), at(50, priority=5))
    sight = Sight(takeable=(at(60), at(20, priority=3)), passed=(at(70, priority=-1),))
    hints.saw(hints.ask_for(ECHO, None), sight, 0.0)

    assert marks(hints) == {-1: 70, 0: 60, 3: 20, 5: 50}


def test_only_the_first_takeable_job_raises_a_mark():
    """Behind it, between two lanes, there may be others that the look did not name."""
    hints = Hints()
    hints.saw(hints.ask_for(ECHO, None), Sight((at(60), at(20, priority=3))), 0.0)

    assert marks(hints) == {0: 60}


def test_a_look_raises_nothing_over_a_job_that_became_ready_meanwhile():
    hints = raised(at(50))
    ticket = hints.ask_for(ECHO, None)
    hints.lower([at(10)])
    hints.saw(ticket, Sight((at(60),), (at(70, priority=-1),)), 0.0)

    assert marks(hints) == {0: 10}
    assert hints._doubtful


def test_an_overtaken_look_still_lowers():
    hints = raised(at(50), at(50, priority=3))
    ticket = hints.ask_for(ECHO, None)
    hints.lower([at(10)])
    hints.saw(ticket, Sight((at(5, priority=3),)), 0.0)

    assert marks(hints) == {0: 10, 3: 5}


def test_a_look_is_due_once_marks_were_raised_and_a_second_has_passed(clock):
    hints = Hints()
    assert not hints.look_is_due

    hints.advance(hints.ask_for(ECHO, None), [at(1)])
    assert hints.look_is_due
    hints.saw(hints.ask_for(ECHO, None), Sight((at(2),)), 0.001)
    assert not hints.look_is_due
    hints.advance(hints.ask_for(ECHO, None), [at(3)])
    assert not hints.look_is_due
    clock.now += LOOK_SECONDS
    assert hints.look_is_due


def test_no_look_is_due_while_no_mark_moves(clock):
    hints = raised(at(1))
    hints.saw(hints.ask_for(ECHO, None), Sight(), 0.001)
    hints.advance(hints.ask_for(ECHO, None), [])
    clock.now += 3600

    assert not hints.look_is_due
    hints.doubt()
    assert hints.look_is_due


def test_marks_from_elsewhere_are_doubted(clock):
    assert Hints({0: UUID(int=9)}).look_is_due
    assert not Hints({}).look_is_due


def test_looks_take_a_fixed_share_of_the_time(clock):
    hints = raised(at(1))
    assert hints.may_look
    hints.saw(hints.ask_for(ECHO, None), Sight(), 0.5)
    hints.doubt()

    clock.now += LOOK_SHARE * 0.5 - 0.01
    assert not hints.may_look
    clock.now += 0.02
    assert hints.may_look


def test_a_busy_claimer_looks_in_time_whatever_that_costs(clock):
    hints = raised(at(1))
    hints.saw(hints.ask_for(ECHO, None), Sight(), 0.5)
    hints.doubt()

    clock.now += LONGEST_PAUSE_SECONDS - 0.01
    assert not hints.look_is_due
    clock.now += 0.02
    assert hints.look_is_due


def test_a_look_that_led_to_jobs_may_be_followed_by_another(clock):
    hints = raised(at(1))
    hints.saw(hints.ask_for(ECHO, None), Sight((at(5),)), 0.5)
    assert not hints.may_look

    hints.look_paid_off()
    assert hints.may_look


# Whatever happens

POSITIONS = st.builds(at, st.integers(1, 6), st.integers(0, 2))
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("ready"), POSITIONS, st.booleans()),
        st.tuples(st.just("claim"), st.integers(1, 4)),
        st.tuples(st.just("overtaken_claim"), st.integers(1, 4), POSITIONS),
        st.tuples(st.just("foreign_at"), POSITIONS),
        st.tuples(st.just("look")),
    ),
    max_size=40,
)


class World:
    """Ready jobs, some of them of use to this claimer, and its hints."""

    def __init__(self):
        self.hints = Hints()
        self.takeable = set()
        self.foreign = set()

    def ready(self, position, told):
        """A job becomes ready; the claimer is told of it, or not."""
        self.foreign.discard(position)
        self.takeable.add(position)
        if told:
            self.hints.lower([position])

    def foreign_at(self, position):
        if position not in self.takeable:
            self.foreign.add(position)

    def claim(self, count):
        ticket = self.hints.ask_for(ECHO, None)
        self.hints.advance(ticket, self.take(count))

    def overtaken_claim(self, count, position):
        """While the claim is under way, a job becomes ready."""
        ticket = self.hints.ask_for(ECHO, None)
        taken = self.take(count)
        self.ready(position, told=True)
        self.hints.advance(ticket, taken)

    def take(self, count):
        found = sorted(p for p in self.takeable if covers(self.hints, p))[:count]
        self.takeable -= set(found)
        return found

    def sight(self):
        """What a correct look sees."""
        levels = {p.priority for p in self.takeable}
        first = min(levels, default=ABOVE_EVERY_PRIORITY)
        before = {p.priority for p in self.foreign if p.priority < first}
        return Sight(
            tuple(min(p for p in self.takeable if p.priority == n) for n in sorted(levels)),
            tuple(max(p for p in self.foreign if p.priority == n) for n in sorted(before)),
        )

    def look(self):
        self.hints.saw(self.hints.ask_for(ECHO, None), self.sight(), 0.0)
        assert self.hidden() == set()

    def hidden(self):
        return {position for position in self.takeable if not covers(self.hints, position)}

    def happens(self, event, *about):
        getattr(self, event)(*about)


@given(events=EVENTS)
def test_after_a_look_no_takeable_job_is_hidden(events):
    world = World()
    for event in events:
        world.happens(*event)
    world.look()


@given(events=EVENTS, late=st.lists(POSITIONS, max_size=4))
def test_a_look_that_was_overtaken_hides_nothing_that_it_saw_or_that_one_was_told_of(events, late):
    world = World()
    for event in events:
        world.happens(*event)
    world.look()
    ticket, sight = world.hints.ask_for(ECHO, None), world.sight()
    for position in late:
        world.ready(position, told=True)
    world.hints.saw(ticket, sight, 0.0)

    assert world.hidden() == set()


@given(events=EVENTS)
def test_a_job_that_the_claimer_was_told_of_is_never_hidden(events):
    world = World()
    for event, *about in events:
        if event == "ready":
            world.ready(about[0], told=True)
        else:
            world.happens(event, *about)
        assert world.hidden() == set()


@given(events=EVENTS)
def test_spans_never_overlap_and_follow_the_order_of_claims(events):
    world = World()
    for event in events:
        world.happens(*event)
    spans = world.hints.spans()

    assert all(a.until == b.priority for a, b in pairwise(spans))
    assert all(span.priority < span.until for span in spans)
    assert spans[-1].until == ABOVE_EVERY_PRIORITY
    assert spans[0].priority == LOWEST_PRIORITY or world.hints.any
