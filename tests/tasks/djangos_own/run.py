"""Run Django's own tests of tasks on this queue, and write how each case ended.

    python -m tests.tasks.djangos_own.run REPORT

The settings name the database server; the run has a test database of its own there. Only two
things of Django's tests are changed: `TASKS` names our backends where it names Django's, and each
class may use the database. The report is a JSON object from case to None, or to why it failed.
"""

import importlib
import json
import pkgutil
import sys
import unittest
from pathlib import Path

import django
import django.test
from django.test import TransactionTestCase, override_settings
from django.test.runner import DiscoverRunner

BACKENDS = {
    "django.tasks.backends.dummy.DummyBackend": f"{__package__}.standins.Waiting",
    "django.tasks.backends.immediate.ImmediateBackend": f"{__package__}.standins.AtOnce",
}


class Pointed(override_settings):
    """`override_settings` with our backends in the place of Django's."""

    def __init__(self, **options):
        if "TASKS" in options:
            options["TASKS"] = {
                alias: params | {"BACKEND": BACKENDS.get(params["BACKEND"], params["BACKEND"])}
                for alias, params in options["TASKS"].items()
            }
        super().__init__(**options)


class Outcomes(unittest.TestResult):
    """How each case ended: None if it passed, else the last line of what went wrong."""

    def __init__(self):
        super().__init__()
        self.cases = {}

    def startTest(self, test):  # noqa: N802 (of unittest)
        super().startTest(test)
        self.cases[name_of(test)] = None

    def addError(self, test, err):  # noqa: N802
        super().addError(test, err)
        self.note(test, err)

    def addFailure(self, test, err):  # noqa: N802
        super().addFailure(test, err)
        self.note(test, err)

    def addSubTest(self, test, subtest, err):  # noqa: N802
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.note(test, err)

    def addSkip(self, test, reason):  # noqa: N802
        super().addSkip(test, reason)
        self.cases[name_of(test)] = f"skipped: {reason}"

    def addExpectedFailure(self, test, err):  # noqa: N802
        super().addExpectedFailure(test, err)
        self.note(test, err)

    def addUnexpectedSuccess(self, test):  # noqa: N802
        super().addUnexpectedSuccess(test)
        self.cases[name_of(test)] = "passed, and was expected to fail"

    def note(self, test, err):
        kind, error, _ = err
        lines = str(error).strip().splitlines() or [""]
        self.cases[name_of(test)] = f"{kind.__name__}: {lines[-1]}"


def name_of(case):
    return case.id().removeprefix("tasks.")


def cases():
    """Return the cases of all modules, as cases that may use the database."""
    import tasks

    django.test.override_settings = Pointed
    suite = unittest.TestSuite()
    for found in pkgutil.iter_modules(tasks.__path__):
        if found.name.startswith("test_"):
            module = importlib.import_module(f"tasks.{found.name}")
            for value in vars(module).values():
                if is_case(value) and value.__module__ == module.__name__:
                    loader = unittest.defaultTestLoader
                    suite.addTests(loader.loadTestsFromTestCase(with_database(value)))
    return suite


def is_case(value):
    return isinstance(value, type) and issubclass(value, unittest.TestCase)


def with_database(case):
    own = {
        "__module__": case.__module__,
        "__qualname__": case.__qualname__,
        # Some name none. To empty the tables of all would take longer than the tests.
        "available_apps": ["django_jobqueue"],
    }
    return type(case.__name__, (case, TransactionTestCase), own)


def main(report):
    django.setup()
    runner = DiscoverRunner(verbosity=0, interactive=False)
    runner.setup_test_environment()
    made = runner.setup_databases(serialized_aliases=[])
    outcomes = Outcomes()
    try:
        cases().run(outcomes)
    finally:
        runner.teardown_databases(made)
    report.write_text(json.dumps(outcomes.cases))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
