"""The reaper: ends the claims of workers that died, and never those of workers that only lagged.

After an outage, a failover or a suspended machine every lease looks expired, and the workers
that hold them are about to renew. So the reaper writes only after a watch in which it saw
nothing of the kind for longer than any claim goes between two renewals.
"""

import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, Self

from ..conf import settings, stuck_threshold
from ..job_context import log_fields
from ..logs import get_logger
from ..managers import REAP_BATCH, JobManager
from ..policy import renew_interval_for
from ..signals import send_reaped
from ..states import Reaped

logger = get_logger(__name__)

DISTURBED_SECONDS = 5.0
"""More than this late, slow or apart by two clocks, and the watch begins again."""

WATCH_MARGIN_SECONDS = 1.0

SHORTEST_PAUSE_SECONDS = 0.25
SHORTEST_BLINDNESS_SECONDS = 1.0
"""Leases so short that these matter are meant for tests."""


class Reading(NamedTuple):
    """What the database said at one moment: its time, and the leases of the running jobs."""

    now: datetime
    leases: tuple[timedelta, timedelta] | None
    """The shortest and the longest, if any job runs."""

    @property
    def watch_seconds(self) -> float:
        """How long a watch is: the longest time between two renewals, and a margin."""
        return WATCH_MARGIN_SECONDS + (renewal_seconds(self.leases[1]) if self.leases else 0.0)

    @property
    def next_seconds(self) -> float:
        """How soon the next reading must follow: as soon as the most frequent renewals do."""
        if self.leases is None:
            return float("inf")
        return max(renewal_seconds(self.leases[0]), SHORTEST_PAUSE_SECONDS)

    @property
    def blind_seconds(self) -> float:
        """After how long without a reading a live claim may have expired unseen.

        A claim is renewed when a third of its lease has passed, or less, and expires after two
        more: half of that is beyond doubt.
        """
        return max(1.5 * self.next_seconds, SHORTEST_BLINDNESS_SECONDS)


class Watch:
    """How long nothing has disturbed this process, its database, or the clocks of the two.

    `clock` is monotonic and in seconds. A pass begins with `begin`, hands in its reading with
    `seen`, and ends with `end`, which says when the next pass is due.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._began_at = clock()
        self._expected_at: float | None = None
        self._since: float | None = None
        self._seen_at = 0.0
        self._offset = 0.0

    def begin(self) -> None:
        """Begin a pass. One that comes late shows that this process stood still."""
        self._began_at = self._clock()
        expected_at, self._expected_at = self._expected_at, None
        if expected_at is not None and self._began_at - expected_at > DISTURBED_SECONDS:
            self.restart()

    def seen(self, reading: Reading) -> float:
        """Take in a reading; return for how many seconds all has been quiet."""
        at = self._clock()
        offset = reading.now.timestamp() - at
        disturbed = (
            at - self._began_at > DISTURBED_SECONDS
            or at - self._seen_at > reading.blind_seconds
            or abs(offset - self._offset) > DISTURBED_SECONDS
        )
        if self._since is None or disturbed:
            self._since, self._offset = at, offset
        self._seen_at = at
        return at - self._since

    def end(self, pause: float) -> None:
        """End a pass; the next is due in `pause` seconds. A slow pass is a disturbance."""
        at = self._clock()
        if at - self._began_at > DISTURBED_SECONDS:
            self.restart()
        self._expected_at = at + pause

    def restart(self) -> None:
        """Forget how long it was quiet: the next reading begins the watch again."""
        self._since = None


class Reaper:
    """Ends dead claims, each `interval`, whatever this worker's mode and slots do.

    It reads the database at least as often as the most frequently renewed claim is renewed, so
    that no outage long enough to expire a live claim goes unseen.
    """

    def __init__(
        self,
        manager: JobManager,
        *,
        interval: timedelta,
        stuck_threshold: timedelta,
        max_attempts: int,
        on_requeued: Callable[[Sequence[Reaped]], object] = lambda _: None,
        batch_size: int = REAP_BATCH,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._manager = manager
        self._interval = interval.total_seconds()
        self._stuck_threshold = stuck_threshold
        self._max_attempts = max_attempts
        self._on_requeued = on_requeued
        self._batch_size = batch_size
        self._clock = clock
        self._watch = Watch(clock)
        self._due_at = float("-inf")
        self._reap_due_at = float("-inf")

    @classmethod
    def from_settings(
        cls,
        manager: JobManager,
        on_requeued: Callable[[Sequence[Reaped]], object],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> Self:
        """Return the reaper that the site's settings describe."""
        return cls(
            manager,
            interval=timedelta(seconds=settings.REAPER_INTERVAL),
            stuck_threshold=stuck_threshold(),
            max_attempts=settings.MAX_ATTEMPTS,
            on_requeued=on_requeued,
            clock=clock,
        )

    def __call__(self) -> float:
        """Read, and reap when that is due and the watch allows; return when to come again.

        A call ahead of time does nothing. What the database raises starts the watch again.
        """
        early = self._due_at - self._clock()
        if early > 0:
            return early
        try:
            pause = self._look()
        except BaseException:
            self._watch.restart()
            self._due_at = float("-inf")
            raise
        self._due_at = self._clock() + pause
        return pause

    def _look(self) -> float:
        self._watch.begin()
        reading = Reading(self._manager.now(), self._manager.running_leases())
        missing = reading.watch_seconds - self._watch.seen(reading)
        if missing <= 0 and self._clock() >= self._reap_due_at:
            more = self._reap(reading.now) == self._batch_size
            self._reap_due_at = self._clock() + (0.0 if more else self._interval)
        pause = max(missing, self._reap_due_at - self._clock(), 0.0)
        pause = min(pause, reading.next_seconds)
        self._watch.end(pause)
        return pause

    def _reap(self, as_of: datetime) -> int:
        # Judged by the time of the reading: a lease that ran out in a halt since then is alive.
        reaped = self._manager.reap(
            self._stuck_threshold, self._max_attempts, as_of=as_of, limit=self._batch_size
        )
        for job in reaped:
            log_reaped(job)
        send_reaped(self._manager.model, reaped, self._manager.write_alias)
        requeued = [job for job in reaped if not job.failed]
        if requeued:
            self._on_requeued(requeued)
        return len(reaped)

    def __str__(self) -> str:
        return "The reaper"


def renewal_seconds(lease: timedelta) -> float:
    """Return how many seconds pass between two renewals of a lease."""
    return renew_interval_for(lease).total_seconds()


def log_reaped(job: Reaped) -> None:
    """Write the one log line that each reaped job gets."""
    logger.warning(
        "Job %s (%s) was reaped and %s: %s",
        job.job_id,
        job.job_type,
        "failed" if job.failed else "waits again",
        job.error.message,
        extra=log_fields(job.job_id, job.job_type, job.attempts, job.worker, job.queue),
    )
