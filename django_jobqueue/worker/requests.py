"""What passes between slots, the exchange and the pool."""

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol
from uuid import UUID, uuid4

from ..states import Decision, SettleOutcome
from .running import Running

if TYPE_CHECKING:
    from .exchange import Exchange

RESEND_SECONDS = 1.0
FIRST_RESEND_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of a decision. `late`: its slot went on without knowing."""

    decision: Decision
    outcome: SettleOutcome
    finished: Running | None
    late: bool = False


class Swapped(NamedTuple):
    """The answer to `swap`. Without a decision, or while it is kept, nothing is settled."""

    settled: Settled | None
    running: Running | None


NOTHING = Swapped(None, None)


class Request:
    """What one slot wants: settle this, give me the next.

    The slot waits on a bare lock: an Event costs several times as much, at every job.
    """

    __slots__ = ("answer", "decision", "finished", "token", "unanswered", "worker")

    def __init__(self, worker: str, decision: Decision | None, token: UUID | None) -> None:
        self.worker = worker
        self.decision = decision
        self.token = token
        self.finished: Running | None = None
        self.answer: Swapped | None = None
        self.unanswered = threading.Lock()
        self.unanswered.acquire()

    def reply(self, answer: Swapped) -> None:
        """Let the slot go on; the first answer counts."""
        if self.answer is None:
            self.answer = answer
            self.unanswered.release()

    def wait(self, seconds: float) -> Swapped | None:
        """Wait so long for the answer; None when there is none yet."""
        self.unanswered.acquire(timeout=seconds)
        return self.answer


@dataclass(slots=True, eq=False)
class Kept:
    """A decision until it is written: when to send it next, and until when to try.

    `delayed`: it was sent and could not be written, so its claim needs renewing. `late`: its slot
    went on without the outcome.
    """

    decision: Decision
    finished: Running | None
    give_up_at: float
    send_at: float = 0.0
    pause: float = FIRST_RESEND_SECONDS
    delayed: bool = False
    late: bool = False

    def postpone(self) -> None:
        """Send again later: soon at first, then every second."""
        self.send_at = time.monotonic() + self.pause
        self.pause = min(self.pause * 2, RESEND_SECONDS)


class Listener(Protocol):
    """Who is told what happens at the exchange; called in its thread, so quick and quiet."""

    def claimed(self, running: Running) -> None:
        """A job was claimed and goes to a slot."""

    def settled(self, settled: Settled) -> None:
        """A decision was written, refused, or given up."""

    def sent(self, settles: int, claims: int, seconds: float) -> None:
        """A round trip is over and its slots have their answers."""

    def handed_back(self, running: Running) -> None:
        """A job did not end before the pool closes; its claim is released next."""

    def exhausted(self) -> None:
        """The budget of claims is spent."""


class Seat:
    """One slot's place at the exchange."""

    def __init__(self, exchange: "Exchange", worker: str) -> None:
        self.worker = worker
        self._exchange = exchange

    def swap(self, decision: Decision | None, *, want_next: bool) -> Swapped:
        """Hand in how the last job ended and get the next one; waits for the answer."""
        return self._exchange.swap(Request(self.worker, decision, uuid4() if want_next else None))
