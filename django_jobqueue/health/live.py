"""Is a worker alive? Its health file tells; no database is asked."""

from .. import healthfile
from .report import Problem, Report

PROBE = "live"


def live(path: str | None, max_age: float) -> Report:
    """Report whether the health file at `path` is at most `max_age` seconds old.

    The measure `age_seconds` is negative for a file that is dated in the future.
    """
    if path is None:
        return unhealthy(
            "no-health-file",
            'No health file is named. Set JOBQUEUE["HEALTH_FILE"], or give --health-file.',
        )
    try:
        sign = healthfile.read(path)
    except OSError as error:
        return unhealthy("unreadable", f"The health file {path} cannot be read: {error}.")
    if sign is None:
        return unhealthy("no-worker", f"There is no health file {path}: no worker runs.")
    measures = {"age_seconds": round(sign.age, 1)}
    if sign.is_fresh(max_age):
        return Report(PROBE, measures=measures)
    if sign.age < 0:
        text = f"The health file {path} is dated {-sign.age:.0f} s in the future: it tells nothing."
    else:
        text = (
            f"The health file {path} is {sign.age:.0f} s old, and may be {max_age:g} s: the "
            f"worker with the process id {sign.pid} hangs, or was killed."
        )
    return Report(PROBE, (Problem("stale", text),), measures)


def unhealthy(code: str, text: str) -> Report:
    """Return a report of one problem."""
    return Report(PROBE, (Problem(code, text),), {"age_seconds": None})
