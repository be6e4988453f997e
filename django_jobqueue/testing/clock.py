"""A clock that stands still until the test moves it, in the place of the database's clock."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from django.utils import timezone

from ..conf import times_are_aware
from ..database.clock import pretend
from ..models import Job


class FakeClock:
    """The time by which the queue lives inside `fake_clock`. It goes forward only."""

    def __init__(self, now: datetime) -> None:
        self._now = now

    @property
    def now(self) -> datetime:
        """The clock's time, aware and in UTC."""
        return self._now

    def advance(self, by: timedelta | None = None, **units: float) -> datetime:
        """Move on by a timedelta, or by what makes one: `advance(hours=1, minutes=5)`.

        Returns the new time. Raises ValueError for a step back.
        """
        return self.move_to(self._now + (by or timedelta(0)) + timedelta(**units))

    def move_to(self, moment: datetime | str) -> datetime:
        """Move on to a time, given as to `fake_clock`, and return it.

        Raises ValueError for a time that has passed.
        """
        instant = instant_of(moment)
        if instant < self._now:
            raise ValueError(
                f"The clock stands at {self._now.isoformat()} and cannot go back to "
                f"{instant.isoformat()}; begin another fake_clock there."
            )
        self._now = instant
        return instant


@contextmanager
def fake_clock(start: datetime | str | None = None) -> Iterator[FakeClock]:
    """Let the queue live by a clock that moves only when told; also a decorator.

    `start`: an aware datetime, or text in ISO 8601 such as "2026-01-01T00:00Z"; None begins now.
    Without a time zone it is the site's, on sites where USE_TZ is off; elsewhere that is a
    ValueError.

    All times that the queue reads and writes come from it, in every thread of this process:
    scheduled jobs become due, leases expire, schedules fire, old jobs are purged. Python's own
    clock goes on as it does.
    """
    clock = FakeClock(instant_of(queue_time() if start is None else start))
    with pretend(lambda: clock.now):
        yield clock


@contextmanager
def standing_at(moment: datetime) -> Iterator[None]:
    """Let the clock stand at a time of a column, for as long as the block lasts."""
    instant = instant_of(moment)
    with pretend(lambda: instant):
        yield


def queue_time() -> datetime:
    """Return the time by the queue's clock, as its columns hold it."""
    return Job.objects.now()


def instant_of(moment: datetime | str) -> datetime:
    """Return a time as an aware one in UTC."""
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment)
    if not isinstance(moment, datetime):
        raise TypeError(f"The time is {moment!r}; expected a datetime or text in ISO 8601.")
    if timezone.is_naive(moment):
        if times_are_aware():
            raise ValueError(
                f"The time {moment.isoformat()} has no time zone; add one, such as Z for UTC."
            )
        moment = timezone.make_aware(moment, timezone.get_default_timezone())
    return moment.astimezone(UTC)
