"""The base class of handlers."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from django.utils.functional import Promise

from ..policy import ExecutionProfile

if TYPE_CHECKING:
    from ..enqueueing import EnqueueOptions
    from ..models import Job


class JobHandler(ABC):
    """What runs jobs of one type. Subclass it, set `type`, write `process`, register an instance.

    One instance serves all slots of a process, from several threads at once: keep what belongs
    to one job in local variables.
    """

    type: str = ""
    """The name in `Job.type`; stable, since rows keep it."""

    profile: ExecutionProfile | None = None
    """Limits of this type; None takes the site's defaults."""

    provider: str | None = None
    """The key under which rate limits are shared; None shares none."""

    history_retention: timedelta | float | None = None
    """How long terminal jobs of this type are kept, as a timedelta or in seconds.

    None: the site's `HISTORY_RETENTION`.
    """

    label: str | Promise = ""
    """What people read in the admin, may be lazily translated; empty shows the type."""

    result_schema: ClassVar[dict[str, Any] | None] = None
    """JSON Schema of the result that a node returns; needed to be node-eligible."""

    @abstractmethod
    def process(self, job: "Job") -> Any:
        """Do the work of `job`, once; raise to fail the attempt.

        What it returns must be JSON-serialisable and is stored as `job.result`. May be
        `async def`. Delivery is at least once, so the work must be safe to repeat.
        """

    @property
    def is_async(self) -> bool:
        """Whether `process` is a coroutine function, awaited on the worker's event loop."""
        return inspect.iscoroutinefunction(self.process)

    @property
    def node_eligible(self) -> bool:
        """Whether a node may run this type: it has a result schema and persists results."""
        return self.result_schema is not None and hasattr(self, "persist_result")

    def node_offload_enabled(self) -> bool:
        """Whether this type, if node-eligible, is offered to nodes now; asked at every claim."""
        return True

    def enqueue(
        self, payload: Mapping[str, Any] | None = None, **options: "Unpack[EnqueueOptions]"
    ) -> "Job":
        """Enqueue a job of this type; `options` are those of `Job.objects.enqueue`."""
        from ..models import Job

        return Job.objects.enqueue(self.type, payload, **options)

    async def aenqueue(
        self, payload: Mapping[str, Any] | None = None, **options: "Unpack[EnqueueOptions]"
    ) -> "Job":
        """Enqueue a job of this type from async code."""
        from ..models import Job

        return await Job.objects.aenqueue(self.type, payload, **options)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.type!r}>"
