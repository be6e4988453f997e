"""Which types are offered to nodes. Worker mode `system` runs everything else."""

from . import registry
from .conf import settings
from .handlers.base import JobHandler
from .logs import get_logger

logger = get_logger(__name__)


def offered_types() -> frozenset[str]:
    """Return the types that nodes may claim now: none while `NODES_ENABLED` is False."""
    if not settings.NODES_ENABLED:
        return frozenset()
    return frozenset(name for name, handler in registry.handlers().items() if is_offered(handler))


def is_offered(handler: JobHandler) -> bool:
    """Whether a handler can run on a node and wants to. One that cannot say stays here."""
    if not handler.node_eligible:
        return False
    try:
        return bool(handler.node_offload_enabled())
    except Exception:
        logger.exception("%r cannot say whether it is offered to nodes; it is not", handler)
        return False
