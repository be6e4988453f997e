"""What real worker processes do about tasks they know, find, and do not find."""

import os
import signal
from datetime import timedelta

import pytest
from django.utils import timezone

from django_jobqueue import JobRequest
from django_jobqueue.exceptions import TaskNotFound, WorkerDied
from django_jobqueue.managers.claims import MOST_WAITING_TYPES
from django_jobqueue.models import Job
from tests.processes import eventually
from tests.taskapp import elsewhere, tasks
from tests.taskapp.framework import TaskResultStatus, default_task_backend

APPS = 'INSTALLED_APPS = [*INSTALLED_APPS, "tests.taskapp"{}]'
TASKS = 'TASKS = {{"default": {{"BACKEND": "django_jobqueue.backends.JobQueueBackend", {}}}}}'


@pytest.fixture
def task_worker_site(site):
    """Make sites whose workers know the tasks of `tests.taskapp`, and further apps."""

    def make(*apps, options='"QUEUES": []', **values):
        more = "".join(f', "{name}"' for name in apps)
        return site(APPS.format(more), TASKS.format(options), **values)

    return make


def write_app(site, name, **modules):
    package = site.folder / name
    package.mkdir()
    for module, text in {"__init__": "", **modules}.items():
        (package / f"{module}.py").write_text(text)


def enqueued(job_type, **payload):
    call = {"args": [], "kwargs": {}, "backend": "default"} | payload
    return Job.objects.enqueue(job_type, call)


def drained(site, *options):
    with site.worker("--drain", "--concurrency", "2", *options) as worker:
        assert worker.process.wait(60) == 0, worker.errors
        return worker.output + worker.errors


def result_of(job_or_result):
    result_id = getattr(job_or_result, "id", None)
    return default_task_backend.get_result(str(result_id))


def test_a_worker_runs_the_tasks_of_every_app(task_worker_site):
    results = [tasks.add.enqueue(1, 2), tasks.add_later.enqueue(3, 4), tasks.about.enqueue()]

    drained(task_worker_site())

    assert [result_of(result).status for result in results] == [TaskResultStatus.SUCCESSFUL] * 3
    assert result_of(results[0]).return_value == 3
    assert result_of(results[1]).return_value == 7
    said = result_of(results[2])
    assert said.return_value["workers"] == said.worker_ids
    assert said.worker_ids[0].count(":") == 2


def test_a_task_in_another_module_is_learned_from_its_job(task_worker_site):
    result = elsewhere.hidden.enqueue(21)

    said = drained(task_worker_site())

    assert result_of(result).return_value == 42
    assert "1 succeeded" in said


def test_a_renamed_task_runs_by_its_old_name_while_the_module_keeps_it(task_worker_site):
    job = enqueued("tests.taskapp.tasks.added", args=[20, 3])

    drained(task_worker_site())

    assert result_of(job).return_value == 23
    assert result_of(job).task == tasks.add


def test_a_worker_asked_for_such_a_task_by_name_runs_it(task_worker_site):
    result, other = elsewhere.hidden.enqueue(21), tasks.add.enqueue(1)

    drained(task_worker_site(), "--types", "tests.taskapp.elsewhere.hidden")

    assert result_of(result).return_value == 42
    assert result_of(other).status == TaskResultStatus.READY


def test_a_name_that_is_no_task_is_refused_at_the_start(task_worker_site):
    done = task_worker_site().manage("run_jobworker", "--types", "tests.taskapp.tasks.gone")

    assert done.returncode == 1
    assert "--types names tests.taskapp.tasks.gone" in done.stderr


def test_every_process_of_the_site_knows_the_tasks(task_worker_site):
    asked = "from django_jobqueue import registry; print(registry.types())"

    done = task_worker_site().manage("shell", "-v", "0", "-c", asked)

    assert "tests.taskapp.tasks.add" in done.stdout
    assert "tests.taskapp.elsewhere.hidden" not in done.stdout


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tests.taskapp.tasks.gone", "The module tests.taskapp.tasks has no such name"),
        ("tests.taskapp.elsewhere.NOT_A_TASK", "has a int of that name"),
        ("tests.taskapp.gone", "The module tests.taskapp has no such name"),
    ],
)
def test_a_task_that_its_module_does_not_hold_fails_at_once_with_an_explanation(
    task_worker_site, name, said
):
    job = enqueued(name)

    drained(task_worker_site())

    job.refresh_from_db()
    assert (job.status, job.attempts) == ("failed", 1)
    assert said in job.last_error
    assert "expected a task called" in job.last_error
    (attempt,) = job.attempt_history.all()
    assert attempt.exception_class == f"{TaskNotFound.__module__}.TaskNotFound"


def test_what_cannot_be_imported_here_is_left_to_others_and_said_once(task_worker_site):
    site = task_worker_site("broken")
    write_app(site, "broken", tasks="1 / 0\n", more="import no_such_library\n")
    jobs = [enqueued("broken.tasks.work"), enqueued("broken.more.work"), enqueued("broken.no.work")]
    jobs.append(enqueued("broken.more.work"))

    said = drained(site)

    for job in jobs:
        job.refresh_from_db()
        assert (job.status, job.attempts) == ("pending", 0)
    assert said.count("The module broken.tasks could not be imported") == 1
    assert "ZeroDivisionError: division by zero (broken/tasks.py, line 1)" in said
    assert said.count("broken.more.work") == 1
    assert "No module named 'no_such_library'" in said
    assert said.count("broken.no.work") == 1


def test_nothing_is_imported_but_what_lies_in_an_installed_app(task_worker_site):
    site = task_worker_site("within")
    mark = "import pathlib; pathlib.Path(__file__ + '.was-here').touch()\n"
    write_app(site, "within", other=mark)
    write_app(site, "within_not", tasks=mark)
    (site.folder / "outside.py").write_text(mark)
    left = [
        enqueued("outside.work"),
        enqueued("within_not.tasks.work"),
        enqueued("os.system", args=["true"]),
        enqueued("no_dots"),
        # Jobs, but none of a task: somebody else's handlers run them.
        Job.objects.enqueue("within.other.work"),
        Job.objects.enqueue("within.other.work2", {"args": [1]}),
    ]

    drained(site)

    for job in left:
        job.refresh_from_db()
        assert (job.status, job.attempts) == ("pending", 0), job.type
    assert list(site.folder.rglob("*.was-here")) == []


def test_a_site_without_tasks_looks_for_none(site):
    job = enqueued("tests.taskapp.tasks.add", args=[1])

    drained(site(APPS.format("")))

    job.refresh_from_db()
    assert job.status == "pending"


def test_a_busy_worker_learns_of_new_tasks(task_worker_site):
    site = task_worker_site()
    with site.worker("--concurrency", "1") as worker:
        eventually(lambda: "ready" in worker.output.lower() or worker.output, "it does not start")
        first = tasks.add.enqueue(1)
        eventually(lambda: result_of(first).is_finished, "a known task does not run")
    assert result_of(first).return_value == 1


def test_a_killed_worker_costs_an_attempt_and_the_task_runs_again(task_worker_site):
    site = task_worker_site(LEASE_CAP=2, REAPER_INTERVAL=0.2)
    result = tasks.sleep.enqueue(0.5)
    with site.worker("--concurrency", "1") as worker:
        eventually(
            lambda: result_of(result).status == TaskResultStatus.RUNNING, "the task does not run"
        )
        os.kill(worker.pid, signal.SIGKILL)
        worker.process.wait(20)
    with site.worker("--concurrency", "1"):
        over = eventually(
            lambda: (found := result_of(result)).is_finished and found, "it does not run again"
        )

    assert over.status == TaskResultStatus.SUCCESSFUL
    assert over.attempts == len(set(over.worker_ids)) == 2
    assert [error.exception_class for error in over.errors] == [WorkerDied]


def test_options_end_a_task_that_runs_too_long(task_worker_site):
    options = '"QUEUES": [], "OPTIONS": {"max_runtime": 0.3, "max_attempts": 1}'
    result = tasks.sleep.enqueue(30)
    after = tasks.add.enqueue(1)
    with task_worker_site(options=options).worker("--concurrency", "1") as worker:
        eventually(lambda: result_of(result).is_finished, "the task does not end")
        eventually(lambda: result_of(after).is_finished, "its slot is not free")
        worker.process.send_signal(signal.SIGTERM)
        worker.process.send_signal(signal.SIGTERM)

    failed = result_of(result)
    assert failed.status == TaskResultStatus.FAILED
    assert failed.errors[0].exception_class.__name__ == "JobTimeoutError"


def test_a_job_of_an_alias_that_is_not_here_fails_with_an_explanation(task_worker_site):
    job = enqueued("tests.taskapp.tasks.add", args=[1], backend="gone")

    drained(task_worker_site())

    job.refresh_from_db()
    assert (job.status, job.attempts) == ("failed", 1)
    assert "task backend 'gone'" in job.last_error


def test_wrong_options_stop_the_start_of_a_worker(task_worker_site):
    site = task_worker_site(options='"OPTIONS": {"max_attempt": 3}')

    done = site.manage("run_jobworker", "--drain")

    assert done.returncode == 1
    assert "django_jobqueue.E009" in done.stderr + done.stdout


def test_a_schedule_may_make_jobs_of_a_task(task_worker_site):
    site = task_worker_site("ticking")
    write_app(
        site,
        "ticking",
        tasks=(
            "from django_jobqueue import schedule\n"
            "from tests.taskapp.framework import task\n"
            "@task\n"
            '@schedule("tick", "* * * * *", payload={"args": [7]}, catch_up="once")\n'
            "def tick(number):\n"
            "    return number\n"
        ),
    )
    from django_jobqueue.models import Schedule

    with site.worker("--concurrency", "1"):
        eventually(lambda: Schedule.objects.filter(name="tick").exists(), "it is not declared")
        row = Schedule.objects.get(name="tick")
        assert (row.type, row.payload) == ("ticking.tasks.tick", {"args": [7]})


@pytest.mark.parametrize(
    "line",
    ["raise KeyboardInterrupt", "import asyncio; raise asyncio.CancelledError", "raise SystemExit"],
)
def test_whatever_an_import_raises_is_said_once_and_stops_nothing(task_worker_site, line):
    site = task_worker_site("broken")
    write_app(site, "broken", other=f"open(__file__ + '.imports', 'a').write('x'); {line}\n")
    job, result = enqueued("broken.other.work"), elsewhere.hidden.enqueue(21)
    with site.worker("--concurrency", "1") as worker:
        eventually(lambda: result_of(result).is_finished, "another task is not learned")
        worker.wait_until_it_says("broken.other.work wait, whose module cannot be imported")

    job.refresh_from_db()
    assert (job.status, job.attempts) == ("pending", 0)
    assert "The look for unknown tasks failed" not in worker.errors
    (imports,) = site.folder.rglob("*.imports")
    assert imports.read_text() == "x"


@pytest.mark.parametrize("name", ["tests.taskapp.tasks.add ", "tests.taskapp.tasks.add\n"])
def test_a_type_that_no_handler_can_have_stops_nothing(task_worker_site, name):
    job, result = enqueued(name), elsewhere.hidden.enqueue(21)

    said = drained(task_worker_site())

    job.refresh_from_db()
    assert job.status == "pending"
    assert result_of(result).status == TaskResultStatus.SUCCESSFUL
    assert said.count("wait, whose module lies in no installed app here") == 1
    assert "The look for unknown tasks failed" not in said


def test_an_import_that_hangs_stops_neither_promotion_nor_other_work(task_worker_site):
    site = task_worker_site("hanging")
    write_app(site, "hanging", other="import time; time.sleep(600)\n")
    job = enqueued("hanging.other.work")
    with site.worker("--concurrency", "1") as worker:
        worker.wait_until_started()
        later = timezone.now() + timedelta(seconds=3)
        result = tasks.add.using(run_after=later).enqueue(1)
        eventually(lambda: result_of(result).is_finished, "what is due is not promoted")
        worker.terminate()
        assert worker.exit_code(10) == 0

    job.refresh_from_db()
    assert job.status == "pending"


def test_a_job_that_is_no_call_hides_no_call_of_the_same_task(task_worker_site):
    first = Job.objects.enqueue("tests.taskapp.elsewhere.hidden", {"args": [1]}, priority=-5)
    result = elsewhere.hidden.enqueue(21)

    drained(task_worker_site())

    first.refresh_from_db()
    assert (result_of(result).return_value, first.result) == (42, 2)


def test_a_dedup_function_beside_its_tasks_costs_them_no_limits(task_worker_site):
    options = '"OPTIONS": {"max_attempts": 1, "dedup": "circular.tasks.key"}'
    site = task_worker_site("circular", options=options)
    text = (
        "from tests.taskapp.framework import task\n"
        "@task\n"
        "def fail():\n"
        "    1 / 0\n"
        "def key(task, args, kwargs):\n"
        "    return None\n"
    )
    write_app(site, "circular", tasks=text)
    job = enqueued("circular.tasks.fail")

    drained(site)

    job.refresh_from_db()
    assert (job.status, job.attempts) == ("failed", 1)


KEPT = '"QUEUES": [], "OPTIONS": {"result_retention": 400 * 86_400}'


@pytest.fixture
def old_results(task_worker_site):
    """Make a site that keeps results long, and an old one of a known and of a hidden task."""
    site = task_worker_site(options=KEPT, HISTORY_RETENTION=30 * 86_400)
    results = [tasks.add.enqueue(1), elsewhere.hidden.enqueue(2)]
    drained(site)
    ended = timezone.now() - timedelta(days=60)
    Job.objects.filter(status="succeeded").update(finished_at=ended)
    return site, results


def test_the_command_that_purges_keeps_results_as_long_as_the_alias_says(old_results):
    site, results = old_results

    done = site.manage("jobqueue", "purge", "--yes")

    assert done.returncode == 0, done.stderr
    assert "0 jobs deleted" in done.stdout
    assert [result_of(result).return_value for result in results] == [1, 4]


def test_a_worker_purges_no_result_of_a_task_that_it_has_not_met(old_results):
    site, results = old_results
    purge = Job.objects.enqueue("jobqueue.history.purge")

    drained(site)

    purge.refresh_from_db()
    assert purge.result == {"purged": 0}
    assert [result_of(result).return_value for result in results] == [1, 4]


def test_the_command_refuses_to_purge_while_a_module_of_tasks_is_broken(task_worker_site):
    site = task_worker_site("broken", options=KEPT)
    write_app(site, "broken", tasks="1 / 0\n")

    done = site.manage("jobqueue", "purge", "--yes")

    assert done.returncode != 0
    assert "The module broken.tasks could not be imported" in done.stderr


def test_many_types_of_others_do_not_delay_what_is_to_be_learned(task_worker_site):
    call = {"args": [], "kwargs": {}, "backend": "default"}
    others = [JobRequest(f"elsewhere.work{n}", call) for n in range(MOST_WAITING_TYPES + 1)]
    Job.objects.enqueue_many(others)
    result = elsewhere.hidden.enqueue(21)

    with task_worker_site().worker("--concurrency", "1"):
        eventually(lambda: result_of(result).is_finished, "it is not learned")


def test_a_site_without_time_zones_runs_tasks(site):
    naive = site(APPS.format(""), TASKS.format('"QUEUES": []'), "USE_TZ = False")
    enqueue = """
from datetime import datetime
from tests.taskapp.tasks import add
print(add.using(run_after=datetime(2026, 1, 1)).enqueue(1, 2).id)
"""
    result_id = naive.manage("shell", "-v", "0", "-c", enqueue).stdout.split()[-1]

    drained(naive)

    look = f"""
from tests.taskapp.tasks import add
result = add.get_result("{result_id}")
print(result.return_value, result.task.run_after, result.finished_at.tzinfo)
"""
    said = naive.manage("shell", "-v", "0", "-c", look)
    assert said.stdout.strip().endswith("3 2026-01-01 00:00:00 None"), said.stderr
