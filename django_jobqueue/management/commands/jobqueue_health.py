"""`manage.py jobqueue_health`: ask the probes, say what they found, exit with 0 or 1."""

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from django.core.management.base import CommandError
from django.db import connections

from django_jobqueue.conf import SETTINGS, Unusable
from django_jobqueue.exceptions import InvalidSettings
from django_jobqueue.health import PROBES, Report, Thresholds
from django_jobqueue.management.output import ProgramCommand

OPTIONS: Mapping[str, tuple[str, Callable[[str], Any], str, str]] = {
    "health_file": ("PATH", str, "HEALTH_FILE", "the health file of the worker"),
    "max_age": ("SECONDS", float, "HEALTH_MAX_AGE", "how old that file may be"),
    "max_overdue": ("SECONDS", float, "HEALTH_MAX_OVERDUE", "how long a due job may wait"),
    "max_stuck": ("N", int, "HEALTH_MAX_STUCK", "how many jobs may be stuck for so long"),
    "max_failing": ("SHARE", float, "HEALTH_MAX_FAILING", "share of jobs that may fail, 0 to 1"),
}
"""By what is overridden: what help calls the value, how it is read, its setting, its meaning."""


class Command(ProgramCommand):
    """Answers whether a worker lives, the database is ready and the queue is in time."""

    help = "Ask whether workers, database and queue are well. Exits with 0 if so, else with 1."
    requires_system_checks = ()  # A probe is asked often and must be quick.

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--live", action="store_true", help="is a worker alive")
        parser.add_argument("--ready", action="store_true", help="can the database be used")
        parser.add_argument("--queue", action="store_true", help="are jobs done in time")
        for name, (metavar, kind, setting, text) in OPTIONS.items():
            option = f"--{name.replace('_', '-')}"
            parser.add_argument(
                option,
                type=partial(as_setting, setting, kind),
                metavar=metavar,
                help=f"{text} ({setting})",
            )
        parser.add_argument("--database", metavar="ALIAS", help="the database of the jobs table")
        parser.add_argument("--format", choices=("text", "json"), default="text")

    def handle(self, *_args: Any, **arguments: Any) -> None:
        """Ask the chosen probes; CommandError if one is not healthy."""
        given = {name: arguments[name] for name in OPTIONS if arguments[name] is not None}
        using = arguments["database"]
        if using is not None and using not in connections:
            known = ", ".join(sorted(connections))
            raise CommandError(f'--database "{using}" is not in DATABASES. Known are: {known}.')
        try:
            limits = replace(Thresholds.from_settings(), **given)
            reports = [PROBES[name](limits, using) for name in chosen(arguments, limits)]
        except InvalidSettings as error:
            raise CommandError(str(error)) from error
        if arguments["format"] == "json":
            healthy = all(report.healthy for report in reports)
            probes = [report.full() for report in reports]
            self.stdout.write(json.dumps({"healthy": healthy, "probes": probes}, indent=2))
        else:
            for report in reports:
                self.stdout.write(line(report))
        if ill := [report.probe for report in reports if not report.healthy]:
            raise CommandError(f"Not healthy: {', '.join(ill)}.")


def as_setting(setting: str, kind: Callable[[str], Any], value: str) -> Any:
    """Read an option as the setting that it overrides is read."""
    try:
        given = kind(value)
    except ValueError:
        given = value
    try:
        return SETTINGS[setting].parse(given)
    except Unusable as expected:
        raise argparse.ArgumentTypeError(f"{value!r}: expected {expected}") from None


def chosen(arguments: dict[str, Any], limits: Thresholds) -> list[str]:
    """Return the probes that were asked for: by default all that can be answered."""
    named = [name for name in PROBES if arguments[name]]
    if named:
        return named
    return [name for name in PROBES if name != "live" or limits.health_file is not None]


def line(report: Report) -> str:
    """Return one probe in one line."""
    if report.problems:
        return f"{report.probe}: {' '.join(problem.text for problem in report.problems)}"
    told = ", ".join(
        f"{key} {value}" for key, value in report.measures.items() if value is not None
    )
    return f"{report.probe}: healthy" + (f" ({told})" if told else "")
