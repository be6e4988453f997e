"""`jobqueue pause` and `resume`: a queue or a type."""

import argparse
from typing import Any

from ..models import QueueControl
from ..states import PauseKind
from .reading import fits, text
from .word import Context, Refused, Word


def declare_resume(parser: argparse.ArgumentParser) -> None:
    """Declare what is paused or resumed."""
    parser.add_argument("kind", choices=tuple(PauseKind.values))
    parser.add_argument("name", type=text, metavar="NAME", help="of the queue or type")


def declare_pause(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    declare_resume(parser)
    parser.add_argument("--reason", type=text, default="", help="for those who wonder why")


def pause(context: Context, arguments: dict[str, Any]) -> None:
    """Pause; what was paused already stays as it is."""
    kind, name, reason = arguments["kind"], arguments["name"], arguments["reason"]
    fits(kind, name)
    if reason:
        fits("reason", reason, QueueControl)
    changed = context.manager.pause(kind, name, reason=reason)
    context.printer.document({"kind": kind, "name": name, "changed": changed})
    context.printer.line(
        f"The {kind} {name} is paused; jobs that run finish."
        if changed
        else f"The {kind} {name} was paused already."
    )
    if not context.manager.on_write_alias().filter(**{kind: name}).exists():
        context.printer.line(f"No job in the table has the {kind} {name}. Is it spelt right?")


def resume(context: Context, arguments: dict[str, Any]) -> None:
    """Resume; Refused when it was not paused, as that may be a slip of the pen."""
    kind, name = arguments["kind"], arguments["name"]
    if not context.manager.resume(kind, name):
        paused = QueueControl.objects.using(context.manager.write_alias).order_by("kind", "name")
        shown = ", ".join(f"{control.kind} {control.name}" for control in paused) or "nothing"
        raise Refused(f"The {kind} {name} is not paused. Paused: {shown}.")
    context.printer.document({"kind": kind, "name": name, "changed": True})
    context.printer.line(f"The {kind} {name} is resumed.")


PAUSE = Word("pause", "stop claims of a queue or a type", declare_pause, pause)
RESUME = Word("resume", "allow claims of a queue or a type again", declare_resume, resume)
