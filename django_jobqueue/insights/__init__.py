"""What the queue does and did, in figures: SELECTs only, safe beside a busy pool.

Every function reads the database of the alias `using` (None: where `Job` is read), takes no lock
and writes nothing. Time is that of the database's clock. What nothing is known of is None, never
0. The dataclasses returned are frozen; durations are seconds as floats, ages are timedeltas.

`now()` and what a `Forecast` tells cost what waits and runs. `durations`, `activity`, `failures`
and `etas` read the jobs that ended in their window; `lifetime` reads all.
"""

from ..database.samples import Durations, Spread
from .backlog import etas
from .estimates import ENOUGH_SAMPLES, Assumption, Basis, Estimate
from .failures import ClassOfFailures, Failures, MessageOfFailures, failures
from .forecast import MOST_AHEAD, Forecast
from .history import EDGES, Activity, Slice, Totals, activity, durations, lifetime
from .lanes import Lane, Pause, Tally, pauses
from .overview import Now, Overview, now, overview
from .questions import eta, position
from .troubles import Limits, Trouble, Vitals
from .window import DEFAULT_WINDOW, LONGEST_WINDOW
from .workers import ALIVE_WITHIN, LiveWorker, workers

__all__ = [
    "ALIVE_WITHIN",
    "DEFAULT_WINDOW",
    "EDGES",
    "ENOUGH_SAMPLES",
    "LONGEST_WINDOW",
    "MOST_AHEAD",
    "Activity",
    "Assumption",
    "Basis",
    "ClassOfFailures",
    "Durations",
    "Estimate",
    "Failures",
    "Forecast",
    "Lane",
    "Limits",
    "LiveWorker",
    "MessageOfFailures",
    "Now",
    "Overview",
    "Pause",
    "Slice",
    "Spread",
    "Tally",
    "Totals",
    "Trouble",
    "Vitals",
    "activity",
    "durations",
    "eta",
    "etas",
    "failures",
    "lifetime",
    "now",
    "overview",
    "pauses",
    "position",
    "workers",
]
