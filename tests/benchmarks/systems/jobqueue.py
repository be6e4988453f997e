"""This project: `run_jobworker` with some slots and processes."""

from tests.benchmarks.bench import jobqueue_schema
from tests.benchmarks.processes import site_environ
from tests.benchmarks.systems.contender import PYTHON, Contender, counting

SLOTS = (1, 4, 16, 64)
BATCH = 10_000


def fill(total):
    from django_jobqueue import JobRequest
    from django_jobqueue.models import Job

    for start in range(0, total, BATCH):
        count = min(BATCH, total - start)
        Job.objects.enqueue_many(JobRequest("bench.noop") for _ in range(count))


remaining = counting("SELECT count(*) FROM django_jobqueue_job WHERE status <> 'succeeded'")


def name_of(slots, processes=1):
    of_processes = f"{processes} processes of " if processes > 1 else ""
    return f"django-jobqueue, {of_processes}{slots} slot{'s' if slots > 1 else ''}"


def contender(slots, processes, expected, *, in_quick_runs=True):
    command = [PYTHON, "-m", "django", "run_jobworker", f"--concurrency={slots}"]
    if processes > 1:
        command.append(f"--processes={processes}")
    return Contender(
        name=name_of(slots, processes),
        module="jobqueue",
        how="default settings",
        commands=[command],
        remaining=remaining,
        expected=expected,
        schema=jobqueue_schema,
        environ=site_environ,
        distributions=("django-jobqueue",),
        in_quick_runs=in_quick_runs,
    )


CONTENDERS = [
    contender(1, 1, 900),
    contender(4, 1, 2000, in_quick_runs=False),
    contender(16, 1, 4000),
    contender(64, 1, 5000),
    contender(16, 2, 4000),
]
