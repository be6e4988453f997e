"""The probes as checks of django-health-check 4, which must be installed.

Add them to the `checks` of its view: `"django_jobqueue.contrib.health_check.JobQueue"`.
"""

import dataclasses

from health_check.base import HealthCheck
from health_check.exceptions import ServiceUnavailable

from ..health.probes import PROBES, Thresholds


class Probe(HealthCheck):  # type: ignore[misc]
    """A check that asks one probe; its messages are codes, not texts."""

    probe = ""

    def run(self) -> None:
        """Raise ServiceUnavailable when the probe is not healthy."""
        report = PROBES[self.probe](Thresholds.from_settings(), None)
        if not report.healthy:
            codes = ", ".join(problem.code for problem in report.problems)
            raise ServiceUnavailable(f"{self.probe}: {codes}")


@dataclasses.dataclass
class JobQueueReady(Probe):
    """The database of the jobs answers and is migrated."""

    probe = "ready"


@dataclasses.dataclass
class JobQueue(Probe):
    """Jobs are done in time and do not fail too often."""

    probe = "queue"


@dataclasses.dataclass
class JobQueueWorker(Probe):
    """A worker on this machine is alive, by its health file."""

    probe = "live"
