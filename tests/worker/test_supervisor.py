"""Several worker processes under a supervisor."""

import os
import signal

import pytest

from django_jobqueue import JobRequest
from django_jobqueue.models import Job
from django_jobqueue.states import JobStatus
from tests.processes import eventually

pytestmark = pytest.mark.usefixtures("transactional_db")

HARD = 'INSTALLED_APPS = [*INSTALLED_APPS, "tests.testapp.hard"]'


def many(job_type, payload, number):
    return Job.objects.enqueue_many([JobRequest(job_type, payload) for _ in range(number)])


def ends():
    return set(Job.objects.values_list("status", "attempts"))


def all_succeeded(number):
    return lambda: Job.objects.filter(status=JobStatus.SUCCEEDED).count() == number


def children(worker):
    """Return the process ids of all workers that began, in order."""
    lines = [line for line in worker.output.splitlines() if " started: " in line]
    return [int(line.split()[1].rpartition(":")[2]) for line in lines]


def test_the_children_share_the_work(site, notebook):
    jobs = many("hard.wait", {**notebook.payload, "seconds": 0.1}, 40)

    with site(HARD).worker("--processes", "2", "--concurrency", "2") as worker:
        eventually(all_succeeded(40), "the work is not done")
        worker.terminate()

        assert worker.exit_code() == 0
    assert sorted(notebook.ids()) == sorted(str(job.pk) for job in jobs)
    assert ends() == {(JobStatus.SUCCEEDED, 1)}
    assert notebook.pids() == {str(pid) for pid in children(worker)}
    assert len(notebook.pids()) == 2
    assert str(worker.pid) not in notebook.pids()


def test_a_killed_child_is_replaced_after_a_pause(site, notebook):
    with site(HARD).worker("--processes", "2", "--concurrency", "1") as worker:
        eventually(lambda: len(children(worker)) == 2, "the children did not start")
        killed = children(worker)[0]
        os.kill(killed, signal.SIGKILL)
        worker.wait_until_it_says(f"Worker process {killed} ended with code -9; another starts in")
        eventually(lambda: len(children(worker)) == 3, "the child was not replaced")

        jobs = many("hard.wait", {**notebook.payload, "seconds": 0.1}, 10)
        eventually(all_succeeded(len(jobs)), "the work is not done")
        worker.terminate()

        assert worker.exit_code() == 0
    assert notebook.pids() == {str(pid) for pid in children(worker)[1:]}


def test_the_pause_grows_while_a_child_keeps_dying(site, notebook):
    """Its lease is long, so each death takes another job along."""
    many("hard.die", {**notebook.payload, "how": "exit"}, 4)
    with site(HARD).worker("--processes", "2", "--concurrency", "1") as worker:
        worker.wait_until_it_says("ended with code 1; another starts in 1 s")
        worker.wait_until_it_says("ended with code 1; another starts in 2 s")
        eventually(lambda: len(notebook.ids()) == 4, "the children were not replaced")
        worker.terminate()
        worker.exit_code()
    assert len(set(notebook.ids())) == 4


def test_a_stop_during_the_pause_is_clean(site):
    with site().worker("--processes", "2") as worker:
        eventually(lambda: len(children(worker)) == 2, "the children did not start")
        for pid in children(worker):
            os.kill(pid, signal.SIGKILL)
        for pid in children(worker):
            worker.wait_until_it_says(f"Worker process {pid} ended with code -9")
        worker.terminate()

        assert worker.exit_code(3) == 0


def test_a_child_that_somebody_stops_alone_is_replaced(site):
    """Only the supervisor's own stop makes the site's capacity smaller."""
    with site().worker("--processes", "2") as worker:
        eventually(lambda: len(children(worker)) == 2, "the children did not start")
        os.kill(children(worker)[0], signal.SIGTERM)
        eventually(lambda: len(children(worker)) == 3, "the child was not replaced")
        worker.terminate()

        assert worker.exit_code() == 0
    assert worker.errors == ""


def test_each_child_is_replaced_after_its_most_jobs_and_all_the_work_is_done(site, notebook):
    jobs = many("hard.wait", {**notebook.payload, "seconds": 0.02}, 12)
    options = ["--processes", "2", "--concurrency", "2", "--max-jobs", "3"]
    with site(HARD).worker(*options) as worker:
        eventually(all_succeeded(len(jobs)), "the work is not done")
        worker.terminate()

        assert worker.exit_code() == 0
    assert sorted(notebook.ids()) == sorted(str(job.pk) for job in jobs)
    assert ends() == {(JobStatus.SUCCEEDED, 1)}
    by_pid = [pid for _, pid in notebook.lines()]
    assert max(by_pid.count(pid) for pid in set(by_pid)) <= 3
    assert len(set(by_pid)) >= 4
    assert worker.errors == ""


def test_a_drain_by_several_processes_ends_when_all_is_done(site, notebook):
    jobs = many("test.note", notebook.payload, 60)
    many("test.flaky", None, 6)
    options = ["--processes", "2", "--concurrency", "2", "--max-jobs", "25", "--drain"]
    with site(HARD).worker(*options) as worker:
        assert worker.exit_code() == 0

    assert sorted(notebook.ids()) == sorted(str(job.pk) for job in jobs)
    assert ends() == {(JobStatus.SUCCEEDED, 1), (JobStatus.SUCCEEDED, 2)}
    assert worker.last_line == "Left: nothing."
    assert worker.errors.count("retry-scheduled") == len(worker.errors.splitlines()) == 6


def test_a_child_that_starts_above_the_memory_limit_warns_once_and_works_on(site, notebook):
    with site(HARD).worker("--processes", "2", "--max-memory", "8") as worker:
        eventually(lambda: worker.errors.count("the limit is ignored") == 2, "no warning")
        # The next look at the memory would be after five seconds.
        with pytest.raises(AssertionError, match="still runs"):
            worker.exit_code(6)
        jobs = many("test.note", notebook.payload, 10)
        eventually(all_succeeded(len(jobs)), "the work is not done")
        worker.terminate()

        assert worker.exit_code() == 0
    assert worker.errors.count("the limit is ignored") == 2
    assert len(children(worker)) == 2


def test_a_child_that_grows_is_replaced_after_its_job(site, notebook):
    """Also when the job that makes it grow is the first thing it does."""
    limit = 160
    options = ["--processes", "2", "--concurrency", "2", "--max-memory", str(limit)]
    many("hard.grow", {**notebook.payload, "mib": limit}, 1)
    with site(HARD).worker(*options) as worker:
        eventually(all_succeeded(1), "the job was not finished")
        eventually(lambda: len(children(worker)) == 3, "the child was not replaced", 15)
        jobs = many("hard.wait", {**notebook.payload, "seconds": 0.05}, 20)
        eventually(all_succeeded(len(jobs) + 1), "the work is not done")
        worker.terminate()

        assert worker.exit_code() == 0
    ((_, grown), *others) = notebook.lines()
    assert grown not in {pid for _, pid in others}
    assert ends() == {(JobStatus.SUCCEEDED, 1)}
    assert "stopped (uses more memory than it may): 1 succeeded." in worker.output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--types", "test.nothing"], "--types names test.nothing, for which no handler"),
        (["--queues", ","], "--queues is empty"),
        (["--database", "nowhere"], 'The database alias "nowhere" is not in DATABASES'),
        (["--max-memory", "0"], "--max-memory: '0': expected a whole number, 1 or more"),
    ],
)
def test_a_wrong_option_is_one_line_and_no_child_is_started(site, options, words):
    done = site().manage("run_jobworker", "--processes", "2", *options)

    assert done.returncode != 0
    assert words in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert done.stderr.count(words) == 1


@pytest.mark.parametrize("value", ["0", "-1", "two"])
def test_a_wrong_number_of_processes_is_one_line(site, value):
    done = site().manage("run_jobworker", f"--processes={value}")

    assert done.returncode != 0
    assert "argument --processes" in done.stderr.splitlines()[-1]
