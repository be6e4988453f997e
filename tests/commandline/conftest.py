import io
import json

import pytest
from django.core.management import CommandError, call_command


class Answer:
    """What the command printed, and the error it ended with, if any."""

    def __init__(self, text, error):
        self.text = text
        self.error = error

    @property
    def lines(self):
        return self.text.splitlines()

    @property
    def said(self):
        return json.loads(self.text)

    @property
    def refusal(self):
        assert self.error is not None, self.text
        return str(self.error)


@pytest.fixture
def jobqueue_command(monkeypatch):
    """Run `manage.py jobqueue …`; `reply` is what a person answers to its question."""
    asked = []

    def run(*words, reply=None):
        output, errors = io.StringIO(), io.StringIO()

        def answer():
            asked.append(errors.getvalue())
            if reply is None:
                raise EOFError
            if reply is UnicodeDecodeError:
                return b"\xff".decode()
            return reply

        monkeypatch.setattr("builtins.input", answer)
        try:
            call_command("jobqueue", *words, stdout=output, stderr=errors)
        except CommandError as error:
            return Answer(output.getvalue(), error)
        return Answer(output.getvalue(), None)

    run.asked = asked
    return run
