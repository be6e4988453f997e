"""What a pool says of itself."""

import logging
from enum import Enum

from ..states import SettleOutcome
from .requests import Settled

logger = logging.getLogger(__name__)


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
    logger.log(
        level,
        "Job %s (%s) attempt %d: %s%s",
        decision.claim.job_id,
        finished.job_type if finished else "unknown type",
        attempt.number,
        settled.outcome.value,
        f" ({attempt.error.last_error})" if attempt.error else "",
    )
