"""The health file of real worker processes."""

import os
import signal
import threading
from pathlib import Path

import pytest
from django.db import connection, transaction

from django_jobqueue import healthfile
from django_jobqueue.models import Job
from django_jobqueue.states import WorkerMode
from django_jobqueue.worker import vitals
from django_jobqueue.worker.vitals import Vitals
from tests.marks import on_postgresql
from tests.processes import eventually
from tests.worker.conftest import pools  # noqa: F401 (a fixture)

pytestmark = pytest.mark.usefixtures("transactional_db")

QUIET_SECONDS = vitals.INTERVAL_SECONDS + 2
"""A file this old was left out once at least."""


@pytest.fixture
def file(tmp_path):
    return str(tmp_path / "worker")


def written_by(file, pid):
    sign = healthfile.read(file)
    return sign is not None and sign.pid == pid


def wait_until_written(file, pid):
    eventually(lambda: written_by(file, pid), "the health file is not written")


def wait_until_old(file):
    eventually(lambda: healthfile.read(file).age > QUIET_SECONDS, "the file is still written")


def is_healthy(site, file):
    done = site.manage(
        "jobqueue_health", "--live", "--health-file", file, "--max-age", str(QUIET_SECONDS)
    )
    assert done.returncode in {0, 1}, done.stderr
    return done.returncode == 0


def test_it_is_fresh_while_the_worker_lives_old_while_it_is_stopped_and_removed_at_the_end(
    site, file
):
    project = site()
    with project.worker("--health-file", file) as worker:
        wait_until_written(file, worker.pid)
        first = Path(file).stat().st_mtime
        eventually(lambda: Path(file).stat().st_mtime > first, "the file is written once only")
        assert is_healthy(project, file)

        worker.send(signal.SIGSTOP)
        wait_until_old(file)
        assert not is_healthy(project, file)

        worker.send(signal.SIGCONT)
        eventually(lambda: healthfile.read(file).age < 2, "the file is not written again")
        worker.terminate()
        assert worker.exit_code() == 0

    assert healthfile.read(file) is None
    assert not is_healthy(project, file)


def test_a_killed_worker_leaves_a_file_that_grows_old(site, file):
    project = site()
    with project.worker("--health-file", file) as worker:
        wait_until_written(file, worker.pid)
        worker.kill()
        wait_until_old(file)

    assert not is_healthy(project, file)


def test_the_setting_names_the_file_too(site, file):
    with site(HEALTH_FILE=file).worker() as worker:
        wait_until_written(file, worker.pid)
        worker.terminate()
        assert worker.exit_code() == 0

    assert healthfile.read(file) is None


def test_the_supervisors_file_is_fresh_only_while_every_child_is(site, file):
    with site().worker("--processes", "2", "--health-file", file) as worker:
        wait_until_written(file, worker.pid)
        children = [healthfile.read(f"{file}.{number}").pid for number in (1, 2)]
        assert worker.pid not in children

        os.kill(children[1], signal.SIGSTOP)
        eventually(
            lambda: healthfile.read(file).age > 3 * QUIET_SECONDS, "one child does not count", 90
        )
        assert healthfile.read(f"{file}.1").age < QUIET_SECONDS

        os.kill(children[1], signal.SIGCONT)
        eventually(lambda: healthfile.read(file).age < 2, "the file is not written again")
        os.kill(children[0], signal.SIGKILL)
        eventually(
            lambda: (sign := healthfile.read(f"{file}.1")) and sign.pid != children[0],
            "no other child took its place",
        )
        worker.terminate()
        assert worker.exit_code() == 0

    assert list(Path(file).parent.glob("worker*")) == []


@pytest.mark.parametrize(
    ("place", "words"), [("none/worker", "none is no folder"), ("", "is a folder")]
)
def test_a_path_that_cannot_be_written_is_one_line(site, tmp_path, place, words):
    done = site().manage("run_jobworker", "--drain", "--health-file", str(tmp_path / place))

    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("CommandError: The health file ")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_folder_without_permission_is_said(tmp_path, monkeypatch):
    """As root every folder may be written to; the answer of the system is all that is changed."""
    monkeypatch.setattr(os, "access", lambda path, mode: False)

    assert "cannot be written to" in healthfile.problem_of(str(tmp_path / "worker"))


def hanging(pool):
    """Have a chore of the housekeeping hang until the returned event is set."""
    end = threading.Event()

    def hang():
        end.wait(30)
        return float("inf")

    pool._housekeeping._due[hang] = 0.0
    pool._housekeeping.hurry(pool._promotion)
    return end


def beaten(pool, file):
    """Return whether a beat writes the file now."""
    Path(file).unlink(missing_ok=True)
    Vitals(file, pool).beat()
    return healthfile.read(file) is not None


def test_a_housekeeping_that_hangs_is_not_alive(pools, file, monkeypatch, caplog):  # noqa: F811
    monkeypatch.setattr(vitals, "STALLED_SECONDS", 1.0)
    pool = pools(1)
    pool.start()
    eventually(lambda: beaten(pool, file), "a living pool is not alive")

    end = hanging(pool)
    try:
        eventually(lambda: not beaten(pool, file), "a hanging chore is not noticed")
        assert "no turn in 1 s: housekeeping" in caplog.text
    finally:
        end.set()
    eventually(lambda: beaten(pool, file), "the pool does not recover")


@on_postgresql
def test_an_exchange_that_hangs_in_a_statement_is_not_alive(pools, file, monkeypatch, caplog):  # noqa: F811
    monkeypatch.setattr(vitals, "STALLED_SECONDS", 1.0)
    pool = pools(1)
    pool.start()
    eventually(lambda: beaten(pool, file), "a living pool is not alive")

    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(f'LOCK TABLE "{Job._meta.db_table}" IN ACCESS EXCLUSIVE MODE')
        eventually(lambda: not beaten(pool, file), "a hanging claim is not noticed")
        assert "exchange" in caplog.text

    eventually(lambda: beaten(pool, file), "the pool does not recover")


def test_an_idle_exchange_is_alive_because_a_beat_wakes_it(pools, jobqueue):  # noqa: F811
    jobqueue(POLL_INTERVAL=60)
    pool = pools(1, mode=WorkerMode.OFF)
    pool.start()
    pool._exchange.turned_at -= 1000

    assert "exchange" in pool.stalled(500)
    eventually(lambda: "exchange" not in pool.stalled(500), "it does not turn when it is asked")


def test_a_dead_thread_is_not_alive(pools, file, caplog):  # noqa: F811
    pool = pools(1)
    pool.start()
    eventually(lambda: beaten(pool, file), "a living pool is not alive")
    pool._watchdog.finished = False
    pool._watchdog.step = lambda: False
    pool._watchdog._changed.set()

    def dead():
        pool._watchdog.finished = False
        return pool.died()

    eventually(dead, "the thread does not end")

    assert not beaten(pool, file)
    assert "threads died: watchdog" in caplog.text


def test_a_file_that_can_no_longer_be_written_is_logged_once(pools, file, caplog):  # noqa: F811
    pool = pools(1)
    pool.start()
    writer = Vitals(f"{file}/gone/worker", pool)

    for _ in range(3):
        writer._next_at = 0.0
        writer.beat()

    assert caplog.text.count("is not written") == 1


@pytest.fixture
def writer(pools, file):  # noqa: F811
    """A worker's vitals; called, it writes its file now."""
    pool = pools(1)
    pool.start()
    vitals_of_it = Vitals(file, pool)

    def beat():
        vitals_of_it._next_at = 0.0
        vitals_of_it.beat()

    beat.end = vitals_of_it.end
    return beat


OTHERS = '{"pid": 1}'


def test_two_workers_that_share_a_path_are_told_once(writer, file, caplog):
    writer()
    for _ in range(3):
        Path(file).write_text(OTHERS)
        writer()

    text = f"The health file {file} is written by the process 1 too: each worker needs its own"
    assert [record.getMessage() for record in caplog.records] == [text]
    assert written_by(file, os.getpid())


def test_what_a_killed_worker_left_is_nobody_elses(writer, file, caplog):
    Path(file).write_text(OTHERS)
    writer()
    writer()

    assert caplog.records == []


def test_a_worker_that_ends_leaves_the_file_of_another(writer, file):
    writer()
    Path(file).write_text(OTHERS)

    writer.end()
    assert Path(file).read_text() == OTHERS

    writer()
    writer.end()
    assert not Path(file).exists()


def test_a_fifo_in_the_place_of_the_file_does_not_hold_the_worker(site, file):
    os.mkfifo(file)

    done = site().manage("run_jobworker", "--drain", "--health-file", file)

    assert done.returncode == 1
    assert "is no regular file" in done.stderr
    assert done.stderr.count("\n") == 1
