"""Handlers that take long, take memory, or take their process along."""

import os
import signal
import threading
from datetime import timedelta
from pathlib import Path

from django_jobqueue import job_handler

MIB = 1024 * 1024

hoard = []


def note_start(job):
    """Append a line to a file, so that it is there whatever happens to this process next."""
    with Path(job.payload["file"]).open("a") as file:
        file.write(f"{job.pk} {os.getpid()}\n")
        file.flush()
        os.fsync(file.fileno())


@job_handler("hard.wait")
def wait(job):
    note_start(job)
    threading.Event().wait(job.payload["seconds"])


@job_handler("hard.die")
def die(job):
    note_start(job)
    if job.payload["how"] == "exit":
        os._exit(1)
    os.kill(os.getpid(), signal.SIGKILL)
    threading.Event().wait()


@job_handler("hard.grow")
def grow(job):
    note_start(job)
    hoard.append(bytearray(os.urandom(MIB)) * job.payload["mib"])


@job_handler("hard.hang", max_runtime=timedelta(seconds=0.2), max_attempts=1)
def hang(job):
    note_start(job)
    threading.Event().wait()
