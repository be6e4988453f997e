"""Exceptions as text that any database can store."""

import os
import traceback
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from ..jsonvalues import storable_text
from ..states import Attempt, Changes, Claim, Decision, ErrorReport, JobStatus, SettleOutcome

PACKAGE = str(Path(__file__).resolve().parents[1]) + os.sep

MAX_CLASS_LENGTH = 200
MAX_MESSAGE_LENGTH = 10_000
MAX_TRACEBACK_LENGTH = 50_000


def report_of(error: BaseException) -> ErrorReport:
    """Return an exception's class, message and traceback, capped. Never raises."""
    return ErrorReport(
        exception_class=capped(class_path(type(error)), MAX_CLASS_LENGTH),
        message=capped(message_of(error), MAX_MESSAGE_LENGTH),
        traceback=capped_start(traceback_of(error), MAX_TRACEBACK_LENGTH),
    )


def failure(claim: Claim, attempt: Attempt, error: BaseException) -> Decision:
    """Return the failure that stands for an end that could not be judged, or not be stored."""
    report = report_of(error)
    changes = Changes(JobStatus.FAILED, last_error=report.last_error)
    return Decision(claim, SettleOutcome.FAILED, changes, replace(attempt, error=report))


def class_path(cls: type) -> str:
    """Return the dotted path of a class, or its bare name for a builtin."""
    if cls.__module__ == "builtins":
        return cls.__qualname__
    return f"{cls.__module__}.{cls.__qualname__}"


def message_of(error: BaseException) -> str:
    """Return `str(error)`, even of an exception whose own `__str__` raises."""
    try:
        return str(error)
    except BaseException as broken:  # noqa: BLE001 (somebody else's code)
        return f"(its message cannot be read: {type(broken).__name__})"


def traceback_of(error: BaseException) -> str:
    """Return the formatted traceback, from the handler on, or a word on why there is none."""
    try:
        frames = beyond_the_package(error.__traceback__)
        return "".join(traceback.format_exception(type(error), error, frames))
    except BaseException as broken:  # noqa: BLE001 (somebody else's code)
        return f"(its traceback cannot be formatted: {type(broken).__name__})"


def beyond_the_package(frames: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the frames of this package that led to the site's code."""
    rest = frames
    while rest is not None and rest.tb_frame.f_code.co_filename.startswith(PACKAGE):
        rest = rest.tb_next
    return rest or frames


def capped(text: str, length: int) -> str:
    """Return storable text of at most `length` characters, its end cut off."""
    text = storable_text(text)
    return text if len(text) <= length else text[: length - 1] + "…"


def capped_start(text: str, length: int) -> str:
    """Return storable text of at most `length` characters, its start cut off."""
    text = storable_text(text)
    return text if len(text) <= length else "…" + text[1 - length :]
