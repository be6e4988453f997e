"""The numbers on the pages, against the functions and constants they come from."""

import re
from datetime import timedelta
from itertools import chain

import pytest

from django_jobqueue import ExecutionProfile, conf
from django_jobqueue.policy import ceiling_for, equal_jitter, lease_for, renew_interval_for
from django_jobqueue.policy.profile import MAX_ATTEMPTS
from django_jobqueue.states import StuckSignal, WorkerMode
from django_jobqueue.worker.abandonment import SILENCE_SECONDS
from django_jobqueue.worker.exchange import LEASES_BEFORE_GIVING_UP
from django_jobqueue.worker.supervisor import MARGIN_SECONDS
from tests.pages import ROOT, example, table_rows

DOCS = ROOT / "docs"
HANDLERS = DOCS / "handlers.md"
FAILURES = DOCS / "failures.md"
RUNNING = DOCS / "running-workers.md"


def seconds(cell):
    return None if cell == "None" else timedelta(seconds=float(cell))


@pytest.mark.parametrize("row", table_rows(HANDLERS, "Profile's `max_runtime`"), ids=" ".join)
def test_the_lease_table_is_what_the_policy_derives(row):
    runtime, timeout, cap, *derived = (seconds(cell) for cell in row)

    ceiling = ceiling_for(ExecutionProfile(max_runtime=runtime), job_timeout=timeout)
    lease = lease_for(ceiling, lease_cap=cap)

    assert derived == [ceiling, lease, renew_interval_for(lease)]


@pytest.mark.parametrize(
    ("heading", "first", "longest"),
    [
        ("Failed attempt", "RETRY_BASE", "RETRY_MAX"),
        ("Rate limit", "RATE_LIMIT_BASE", "RATE_LIMIT_MAX"),
    ],
)
def test_the_tables_of_waits_are_what_the_backoff_gives(heading, first, longest):
    base, cap = seconds(conf.DEFAULTS[first]), seconds(conf.DEFAULTS[longest])
    for attempt, *bounds in table_rows(FAILURES, heading):
        waits = [equal_jitter(int(attempt), base=base, cap=cap, r=r) for r in (0.0, 1.0)]

        assert waits == [seconds(bound) for bound in bounds], f"{heading} {attempt}"


def test_the_failures_page_lists_every_reaper_signal():
    rows = table_rows(FAILURES, "Signal")

    assert {row[0] for row in rows} == set(StuckSignal.values)


def test_the_running_page_lists_every_mode():
    assert [row[0] for row in table_rows(RUNNING, "Mode")] == WorkerMode.values


def test_whatever_stops_a_worker_waits_longer_than_it_may_take():
    unit = example_text(RUNNING, "/etc/systemd/system/mysite-jobworker.service")
    manifest = example_text(RUNNING, "jobworker.yaml")
    limits = [
        int(re.search(pattern, text)[1])
        for pattern, text in (
            (r"TimeoutStopSec=(\d+)", unit),
            (r"terminationGracePeriodSeconds: (\d+)", manifest),
        )
    ]

    # A supervisor gives its children a little longer than they give themselves.
    assert min(limits) > conf.DEFAULTS["SHUTDOWN_GRACE"] + max(5, MARGIN_SECONDS)


def test_the_numbers_in_the_text_are_those_of_the_code():
    give_up_minutes = conf.DEFAULTS["LEASE_CAP"] * LEASES_BEFORE_GIVING_UP / 60

    assert f"1 to {MAX_ATTEMPTS:,}" in HANDLERS.read_text()
    assert f"After {SILENCE_SECONDS:.0f} seconds the worker" in HANDLERS.read_text()
    assert f"ten leases, {give_up_minutes:.0f} minutes" in RUNNING.read_text()


def test_the_commands_of_the_deployments_are_understood():
    from django_jobqueue.management.commands.run_jobworker import Command

    parser = Command().create_parser("manage.py", "run_jobworker")
    text = RUNNING.read_text()
    lines = re.findall(r"manage\.py run_jobworker(.*)", text)
    listed = re.findall(r'"manage\.py", "run_jobworker", (.*)\]', text)
    commands = [line.split() for line in lines] + [re.findall(r'"(.*?)"', line) for line in listed]

    for options in commands:
        parser.parse_args(options)
    assert len(commands) >= 4
    assert "--processes" in chain(*commands)


def test_the_mode_of_the_page_is_a_mode():
    namespace = {}
    exec(example("running-workers.md", "settings.py (WORKER_MODE)"), namespace)  # ours

    assert conf.parse_worker_mode(namespace["JOBQUEUE"]["WORKER_MODE"]) is WorkerMode.ALL


def example_text(page, caption):
    """Return a block of code in any language."""
    block = rf"^```\{{code-block\}} \w+\n:caption: {re.escape(caption)}\n\n(.*?)^```$"
    return re.search(block, page.read_text(), re.MULTILINE | re.DOTALL)[1]
