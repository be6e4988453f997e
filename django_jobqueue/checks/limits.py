"""Durations that contradict each other.

Those that only look odd are left alone: a grace shorter than `JOB_TIMEOUT` is the default, and a
cap above every lease changes nothing.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.core import checks

from .. import conf, registry
from ..policy.profile import ExecutionProfile, ceiling_for, lease_for
from .catalogue import message
from .settings import settings_are_readable

LONG_LEASE = timedelta(hours=1)
MOST_NAMES = 3

OWN_TYPES = "jobqueue."
"""What the package itself runs is none of the site's mistakes."""

WAITS = (("RETRY_BASE", "RETRY_MAX"), ("RATE_LIMIT_BASE", "RATE_LIMIT_MAX"))


def check_limits(**_: Any) -> list[checks.CheckMessage]:
    """W009 to W012."""
    if not settings_are_readable():
        return []
    profiles = {
        name: handler.profile
        for name, handler in registry.handlers().items()
        if not name.startswith(OWN_TYPES)
    }
    return [*short_waits(), *long_leases(profiles), *hasty_threshold(), *long_grace(profiles)]


def short_waits() -> list[checks.CheckMessage]:
    """W009: the last step of a backoff is shorter than its first."""
    found: list[checks.CheckMessage] = []
    for base, longest in WAITS:
        first, last = getattr(conf.settings, base), getattr(conf.settings, longest)
        if last < first:
            found.append(
                message(
                    "W009",
                    f'JOBQUEUE["{longest}"] is {last:g} s, and ["{base}"] is {first:g} s: '
                    f"no wait is ever longer than {last:g} s.",
                    f"Set {longest} to {first:g} s or more, or {base} to less. "
                    "Both are in seconds, or a timedelta.",
                )
            )
    return found


def long_leases(profiles: Mapping[str, ExecutionProfile | None]) -> list[checks.CheckMessage]:
    """W010: what a killed worker ran comes back only after an hour or more."""
    cap = conf.settings.LEASE_CAP
    if cap is not None and cap < LONG_LEASE.total_seconds():
        return []
    longest = max(map(lease_of, [None, *profiles.values()]))
    if longest < LONG_LEASE:
        return []
    names = sorted(name for name, profile in profiles.items() if lease_of(profile) >= LONG_LEASE)
    shown = ", ".join(names[:MOST_NAMES]) + (" and others" if len(names) > MOST_NAMES else "")
    return [
        message(
            "W010",
            f'JOBQUEUE["LEASE_CAP"] is {cap if cap is None else f"{cap:g} s"}, so leases last up '
            f"to {longest} ({shown}): when a worker is killed, its jobs wait that long.",
            "Set LEASE_CAP to 90 or so. A job may run longer than its lease, which is renewed.",
        )
    ]


def hasty_threshold() -> list[checks.CheckMessage]:
    """W011: a job without a lease is taken for dead sooner than one with a lease."""
    threshold = conf.settings.STUCK_THRESHOLD
    lease = lease_of(None).total_seconds()
    if threshold >= lease:
        return []
    return [
        message(
            "W011",
            f'JOBQUEUE["STUCK_THRESHOLD"] is {threshold:g} s, shorter than a lease, {lease:g} s: '
            "a running job that has no lease is given up before one whose worker is dead.",
            f"Set STUCK_THRESHOLD to {lease:g} s or more; the default is 30 minutes.",
        )
    ]


def long_grace(profiles: Mapping[str, ExecutionProfile | None]) -> list[checks.CheckMessage]:
    """W012: the site asks for a grace that the timeout makes useless."""
    if not conf.is_set("SHUTDOWN_GRACE"):
        return []
    grace = conf.settings.SHUTDOWN_GRACE
    ceilings = [ceiling_of(profile) for profile in [None, *profiles.values()]]
    if None in ceilings:
        return []
    longest = max(c.total_seconds() for c in ceilings if c is not None)
    if grace <= longest:
        return []
    return [
        message(
            "W012",
            f'JOBQUEUE["SHUTDOWN_GRACE"] is {grace:g} s, and no job may run longer than '
            f"{longest:g} s: its timeout ends it before the grace does.",
            "Raise JOB_TIMEOUT or the type's max_runtime if jobs need that long; "
            f"else set SHUTDOWN_GRACE to {longest:g} s or less.",
        )
    ]


def ceiling_of(profile: ExecutionProfile | None) -> timedelta | None:
    """Return the ceiling of a type with this profile on this site."""
    return ceiling_for(profile, job_timeout=timedelta(seconds=conf.settings.JOB_TIMEOUT))


def lease_of(profile: ExecutionProfile | None) -> timedelta:
    """Return the lease of a type with this profile on this site."""
    cap = conf.settings.LEASE_CAP
    return lease_for(ceiling_of(profile), lease_cap=None if cap is None else timedelta(seconds=cap))
