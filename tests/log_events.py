"""Every log line that the package can write, read from its source."""

import ast
from typing import NamedTuple

from tests.pages import ROOT

LEVELS = {"exception": "error", "warn_once": "warning", "log": "varies"}
METHODS = {"debug", "info", "warning", "error", "critical", "exception", "log"}


class Event(NamedTuple):
    logger: str
    level: str
    text: str


def events():
    for path in sorted((ROOT / "django_jobqueue").rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and (event := event_of(node)):
                yield Event(module, *event)


def event_of(call):
    """Return the level and the text of a log call; None for any other, or one that passes on."""
    function = call.func
    if isinstance(function, ast.Attribute) and function.attr in METHODS:
        if not (isinstance(function.value, ast.Name) and function.value.id == "logger"):
            return None
        name, text = function.attr, call.args[1 if function.attr == "log" else 0]
    elif isinstance(function, ast.Name) and function.id == "warn_once":
        name, text = function.id, call.args[1]
    else:
        return None
    if isinstance(text, ast.Name) and text.id == "event":
        return None  # Inside warn_once itself.
    assert isinstance(text, ast.Constant), f"{ast.unparse(call)} has no text that stays the same"
    return LEVELS.get(name, name), text.value
