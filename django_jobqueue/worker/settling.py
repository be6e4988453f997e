"""What follows from a decision: its settle, the end of the span, the `job_settled` signal."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from uuid import UUID

from ..database.errors import is_refusal
from ..models import Job
from ..signals import send_settled, settled_event
from ..states import Decision, SettleOutcome
from .events import log_refused, log_unwritable
from .reports import failure
from .requests import Settled
from .running import Running
from .slot import is_heard

Outcomes = Mapping[UUID, SettleOutcome]


def settle_alone(
    settle: Callable[[Iterable[Decision]], Outcomes],
    decision: Decision,
    finished: Running | None,
) -> tuple[Decision, Outcomes]:
    """Settle one decision; as a failure with the reason if the database refuses its content.

    Returns the decision that stands, and what `settle` answered.
    """
    try:
        return decision, settle([decision])
    except Exception as error:
        if not is_refusal(error):
            raise
        log_refused(decision, finished, error)
        decision = failure(decision.claim, decision.attempt, error)
    try:
        return decision, settle([decision])
    except Exception as error:
        if not is_refusal(error):
            raise
        log_unwritable(decision, finished, error)
        return decision, {decision.claim.token: SettleOutcome.WRITE_FAILED}


def conclude(settled: Settled, surroundings: Callable[[], AbstractContextManager[None]]) -> None:
    """End the attempt's span, and tell the receivers of `job_settled` if the job ended.

    Receivers run inside `surroundings`.
    """
    decision, finished = settled.decision, settled.finished
    if finished is None:
        return
    finished.tell_end(settled.outcome, decision.attempt.error)
    changes, job = decision.changes, finished.job
    if settled.outcome is decision.outcome and is_heard(decision):
        event = settled_event(
            job,
            changes.status,
            attempts=decision.attempt.number,
            last_error=changes.last_error or job.last_error,
        )
        with surroundings():
            send_settled(Job, event)
