"""`manage.py demo`: the queue's whole way over real files, with the real worker."""

import signal
import sys
import threading
import time
from argparse import ArgumentParser
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, connection

from example_project.demo import account, folder
from example_project.demo.interrupts import Interrupts, counted_interrupts, handled_by
from example_project.demo.tally import Tally
from example_project.demo.worker import WorkerProcess
from example_project.files import intake

try:
    from rich.console import Console

    from example_project.demo.display import Display, console
    from example_project.demo.report import Report
except ImportError:
    raise ImproperlyConfigured("The demo needs rich; run pip install -e '.[demo]' here.") from None

REFRESH_SECONDS = 0.2
OTHERS_SECONDS = 30.0
INTERRUPTED = 130
STOPPING = "Stopping: the worker finishes what it runs. Ctrl-C again stops it at once."


class Command(BaseCommand):
    """Migrate, enqueue jobs over the files of a folder, run a worker, tell what happened."""

    help = (
        "Migrate the database, enqueue jobs over the files of a folder, run a worker until they "
        "are done, and print a summary. Without a folder: the sample files of the project."
    )
    # A refused option must not even open the database, which some checks do.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Name the folder and the limits."""
        parser.add_argument("folder", nargs="?", type=Path, default=folder.SAMPLES)
        parser.add_argument(
            "--concurrency", type=int, default=4, help="Jobs that run at once; default 4."
        )
        parser.add_argument(
            "--limit", type=int, default=50, help="Files to take from the folder; default 50."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the demonstration."""
        for name in ("concurrency", "limit"):
            if options[name] < 1:
                raise CommandError(f"--{name} is {options[name]}; give a number of 1 or more.")
        try:
            content = folder.content_of(options["folder"], limit=options["limit"])
        except folder.UnusableFolder as error:
            raise CommandError(str(error)) from None
        try:
            # A polite kill takes the way of Ctrl-C.
            with handled_by(signal.default_int_handler, signal.SIGTERM):
                self.demonstrate(content, options)
        except OperationalError as error:
            raise CommandError(unusable(error)) from None
        except KeyboardInterrupt:
            self.stderr.write("Interrupted before the worker started; run the command again.")
            sys.exit(INTERRUPTED)

    def demonstrate(self, content: folder.FolderContent, options: dict[str, Any]) -> None:
        """Migrate, take the files in, run the worker, report."""
        screen = console()
        call_command("migrate", interactive=False, verbosity=0)
        password = account.ensure_admin()
        taken = intake.add_folder(content.files, reason="demo")
        announce(screen, content, taken)
        tally = Tally([job.id for job in taken.jobs])
        started = time.monotonic()
        worker, code = run_worker(screen, tally, options)
        seconds = time.monotonic() - started
        Report(
            tally, len(taken.documents), content.path == folder.SAMPLES, seconds, password
        ).print(screen)
        self.conclude(tally, worker, code)

    def conclude(self, tally: Tally, worker: WorkerProcess, code: int | None) -> None:
        """End with an error unless the worker did all there was to do."""
        if code is None:
            self.stderr.write("Interrupted; nothing is lost. A worker runs what is left.")
            sys.exit(INTERRUPTED)
        if code:
            said = "\n".join(worker.lines) or "It said nothing."
            raise CommandError(f"The worker ended with exit code {code}:\n{said}")
        everything = tally.all
        if everything.over < everything.total:
            raise CommandError(
                f"{everything.total - everything.over} jobs are left, though the worker ended "
                "well. Is JOBS_WORKER_MODE off, or a queue paused, or another worker busy?"
            )


def run_worker(
    screen: Console, tally: Tally, options: dict[str, Any]
) -> tuple[WorkerProcess, int | None]:
    """Run the worker and show the progress; the code is None when a person interrupted."""
    with counted_interrupts() as interrupts, Display(screen, tally) as display:
        echo = display.log if options["verbosity"] > 1 else None
        worker = WorkerProcess(options["concurrency"], echo)
        code = None
        try:
            while code is None and not interrupts:
                code = worker.wait(REFRESH_SECONDS)
                tally.read()
                display.update()
            if code == 0:
                wait_for_others(tally, display, interrupts)
            if interrupts and not code:
                worker.stop(partial(display.log, STOPPING), interrupts)
                code = None
        except BaseException:
            worker.stop(lambda: None, interrupts)
            raise
        finally:
            # However it ended, the last numbers are the true ones.
            tally.read()
    return worker, code


def wait_for_others(tally: Tally, display: Display, interrupts: Interrupts) -> None:
    """Wait, within bounds, for jobs that another worker of the site took and still has."""
    deadline = time.monotonic() + OTHERS_SECONDS
    pause = threading.Event()
    while time.monotonic() < deadline and not interrupts:
        tally.read()
        display.update()
        everything = tally.all
        if not everything.running and not everything.waiting_for_retry:
            return
        pause.wait(REFRESH_SECONDS)


def announce(screen: Console, content: folder.FolderContent, taken: intake.Intake) -> None:
    """Print what is going to be done."""
    notes = [
        (len(taken.documents) - taken.created, "known from an earlier run"),
        (content.unreadable, "left out because they cannot be read"),
        (content.too_large, f"left out because they are over {settings.MAX_UPLOAD_MIB} MiB"),
        (content.over_limit, "left out because of --limit"),
    ]
    told = "".join(f", {number} {what}" for number, what in notes if number)
    enqueued = len(taken.jobs) - taken.waited
    waited = f"; {taken.waited} wait from an earlier run" if taken.waited else ""
    lines = (
        f"Database  {database_name()}",
        f"Folder    {content.path}",
        f"Files     {len(taken.documents)}{told}",
        f"Jobs      {enqueued} enqueued, in one transaction with the files' rows{waited}",
    )
    for line in (*lines, ""):
        screen.print(line, markup=False, soft_wrap=True)


def database_name() -> str:
    """Return the database as a person knows it."""
    return f"{connection.display_name}, {connection.settings_dict['NAME']}"


def unusable(error: OperationalError) -> str:
    """Return one line about a database that does not answer as it should."""
    reason = str(error).strip().partition("\n")[0]
    return (
        f"The database {database_name()} cannot be used: {reason}. "
        "Start it, correct DATABASE_URL, or leave DATABASE_URL out for SQLite."
    )
