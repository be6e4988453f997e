"""Three questions about the health of the queue, each answered with a `Report`.

`live`: is a worker alive? `ready`: can the database be used? `queue`: is work done in time?
"""

from .live import live
from .probes import PROBES, Thresholds
from .queue import queue
from .ready import ready
from .report import Problem, Report

__all__ = ["PROBES", "Problem", "Report", "Thresholds", "live", "queue", "ready"]
