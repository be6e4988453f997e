"""What a pool says of itself."""

import logging
from enum import Enum
from typing import Any

from ..job_context import log_fields
from ..logs import get_logger
from ..states import Decision, SettleOutcome
from .requests import Settled
from .running import Running

logger = get_logger(__name__)


class PoolEvent(Enum):
    """What a pool says of itself, through its inbox."""

    DRAINED = "drained"
    EXHAUSTED = "claimed as many jobs as it may"
    OVERGROWN = "uses more memory than it may"
    ABANDONED = "too many timed-out handlers still run"
    ENDED = "every slot has ended"


LEVELS = {
    SettleOutcome.SUCCEEDED: logging.INFO,
    SettleOutcome.RETRY_SCHEDULED: logging.WARNING,
    SettleOutcome.RATE_LIMIT_DEFERRED: logging.WARNING,
    SettleOutcome.FAILED: logging.ERROR,
    SettleOutcome.CLAIM_LOST: logging.ERROR,
    SettleOutcome.WRITE_FAILED: logging.ERROR,
}


def log_settled(settled: Settled) -> None:
    """Write the one log line that each settled attempt gets."""
    level = LEVELS.get(settled.outcome, logging.INFO)
    if not logger.isEnabledFor(level):
        return
    decision, finished = settled.decision, settled.finished
    attempt = decision.attempt
    how = f" ({attempt.error.last_error})" if attempt.error else ""
    if attempt.error and settled.outcome is SettleOutcome.FAILED:
        how += f"\n{attempt.error.traceback.rstrip()}"
    logger.log(
        level,
        "Job %s (%s) attempt %d: %s%s",
        decision.claim.job_id,
        finished.job_type if finished else "unknown type",
        attempt.number,
        settled.outcome.value,
        how,
        extra=fields_of(decision, finished) | {"outcome": settled.outcome.value},
    )


def log_refused(decision: Decision, finished: Running | None, error: Exception) -> None:
    """Write the one log line of an outcome that the database does not take for its content."""
    job_id, extra = decision.claim.job_id, fields_of(decision, finished)
    logger.error("The database refused how job %s ended", job_id, exc_info=error, extra=extra)


def log_unwritable(decision: Decision, finished: Running | None, error: Exception) -> None:
    """Write the one log line of a job that cannot even be settled as failed."""
    job_id, extra = decision.claim.job_id, fields_of(decision, finished)
    logger.error("The row of job %s takes no write", job_id, exc_info=error, extra=extra)


def fields_of(decision: Decision, finished: Running | None) -> dict[str, Any]:
    """Return the attributes of a log record about how an attempt ended."""
    if finished is not None:
        return log_fields(*finished.about)
    attempt = decision.attempt
    return log_fields(decision.claim.job_id, attempt=attempt.number, worker=attempt.worker)


def log_started(running: Running) -> None:
    """Write the one log line of a handler that begins; called at every job."""
    if logger.isEnabledFor(logging.DEBUG):
        logger.debug(
            "Job %s (%s) attempt %d starts",
            running.claim.job_id,
            running.job_type,
            running.about.attempt,
            extra=log_fields(*running.about),
        )


def log_handed_back(running: Running) -> None:
    """Write the one log line of a job that a closing pool takes from its handler."""
    logger.warning(
        "Job %s (%s) did not finish in time and is handed back",
        running.claim.job_id,
        running.job_type,
        extra=log_fields(*running.about, outcome=SettleOutcome.RELEASED.value),
    )
