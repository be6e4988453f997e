"""A queue as an operator finds it on an ordinary day: busy, with a few things that went wrong."""

import random
import uuid
from datetime import timedelta

from django.contrib.auth.models import Permission, User
from django.utils import timezone

from django_jobqueue import __version__
from django_jobqueue.models import Job, JobAttempt, WorkerProcess
from django_jobqueue.states import SettleOutcome
from tests.factories import JobAttemptFactory, JobFactory, QueueControlFactory

TYPES = {
    "reports.build": ("default", 20.0),
    "mail.send": ("mail", 0.4),
    "images.resize": ("images", 3.0),
    "billing.sync": ("default", 8.0),
}
ERRORS = (
    ("requests.exceptions.ConnectTimeout", "no answer from 10.0.0.{n} within 5 s"),
    ("builtins.ValueError", "row {n} has no amount"),
    ("smtplib.SMTPRecipientsRefused", "550 no such user: guest{n}"),
)
PASSWORD = "correct horse"
SECRET = "hunter2"

TRACEBACK = """Traceback (most recent call last):
  File "/srv/site/billing/jobs.py", line 41, in sync
    client.push(invoice, password="hunter2")
  File "/srv/site/billing/client.py", line 88, in push
    raise ValueError(f"row {row} has no amount")
ValueError: row 7 has no amount
"""


def ordinary_day(hours=24, an_hour=40, seed=4):
    """Fill the tables and return the job that is worth a look: it failed three times."""
    luck = random.Random(seed)
    now = timezone.now()
    ended = []
    for hour in range(hours):
        for _ in range(luck.randint(an_hour // 2, an_hour)):
            finished = now - timedelta(hours=hour, minutes=luck.uniform(0, 59))
            ended.append(an_ended_job(luck, finished, fails=luck.random() < 0.04))
    Job.objects.bulk_create(ended)

    for number in range(24):
        name = luck.choice(list(TYPES))
        since = now - timedelta(seconds=luck.uniform(1, 200))
        JobFactory(
            type=name,
            queue=TYPES[name][0],
            priority=luck.choice([0, 0, 0, 5]),
            created_at=since,
            ready_at=since,
            subject_type="report",
            subject_id=str(number),
        )
    JobFactory.create_batch(3, type="reports.build", scheduled=True)
    for name in ("reports.build", "images.resize"):
        started = now - timedelta(seconds=luck.uniform(2, 30))
        JobFactory(
            type=name,
            queue=TYPES[name][0],
            running=True,
            created_at=started - timedelta(seconds=1),
            started_at=started,
        )
    long_ago = now - timedelta(minutes=20)
    JobFactory(
        type="billing.sync",
        running=True,
        created_at=long_ago,
        started_at=long_ago,
        worker="web-3:911:1",
    )
    JobFactory(type="mail.send", queue="mail", cancelled=True)
    QueueControlFactory(name="images", reason="the converter is being replaced")
    for host, busy in (("web-1", 2), ("web-2", 1)):
        a_worker(host, busy, now)
    return a_job_worth_a_look(now)


def an_ended_job(luck, finished, *, fails):
    name = luck.choice(list(TYPES))
    queue, seconds = TYPES[name]
    started = finished - timedelta(seconds=seconds * luck.lognormvariate(0, 0.5))
    created = started - timedelta(seconds=luck.uniform(0.1, 90))
    error, message = luck.choice(ERRORS)
    text = f"{error.rpartition('.')[2]}: {message.format(n=luck.randint(1, 99))}"
    return JobFactory.build(
        type=name,
        queue=queue,
        created_at=created,
        ready_at=created,
        started_at=started,
        finished_at=finished,
        **({"failed": True, "last_error": text} if fails else {"succeeded": True}),
    )


def a_job_worth_a_look(now):
    job = JobFactory(
        type="billing.sync",
        failed=True,
        attempts=3,
        created_at=now - timedelta(minutes=9),
        started_at=now - timedelta(minutes=1, seconds=4),
        finished_at=now - timedelta(minutes=1),
        payload={"invoice": 7, "lines": [1, 2, 3], "api_key": SECRET},
        worker="web-2:214:1",
        subject_type="auth.user",
        subject_id=str(User.objects.order_by("pk").values_list("pk", flat=True).first()),
        reason="the month ended",
        last_error="ValueError: row 7 has no amount, password=hunter2",
        trace_context="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    )
    for number in (1, 2, 3):
        begun = job.started_at - timedelta(minutes=3) * (3 - number)
        JobAttemptFactory(
            job=job,
            number=number,
            outcome=SettleOutcome.FAILED if number == 3 else SettleOutcome.RETRY_SCHEDULED,
            started_at=begun,
            finished_at=begun + timedelta(seconds=4),
            worker=f"web-{number % 2 + 1}:214:1",
            message="row 7 has no amount, password=hunter2",
            traceback=TRACEBACK,
        )
    assert JobAttempt.objects.filter(job=job).count() == 3
    return job


def a_worker(host, busy, now):
    return WorkerProcess.objects.create(
        id=uuid.uuid4(),
        host=host,
        pid=214,
        version=__version__,
        mode="all",
        slots=4,
        busy=busy,
        types=["reports.build", "mail.send", "images.resize"],
        queues=None,
        started_at=now - timedelta(hours=7),
        seen_at=now,
    )


def operator(name="ann"):
    """Someone who may do everything."""
    return User.objects.create_superuser(name, password=PASSWORD)


def viewer(name="vic"):
    """Someone who may look, and not at what jobs carry."""
    user = User.objects.create_user(name, password=PASSWORD, is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_job"))
    return user


def a_job_of_extremes():
    """Return a job whose every text is as long as it may be, and in no place to break."""
    queue, worker = "q" * 100, "host" * 20
    job = JobFactory(
        type="long." + "name" * 40,
        queue=queue,
        failed=True,
        worker=worker,
        last_error="x" * 2000,
        subject_type="s" * 60,
        subject_id="9" * 60,
        reason="because" * 20,
        dedup_key="k" * 200,
        payload={"key": "v" * 3000},
    )
    JobAttemptFactory(
        job=job,
        exception_class="c." * 60,
        message="m" * 2000,
        traceback="t" * 3000,
        worker=worker,
    )
    QueueControlFactory(name=queue, reason="r" * 200)
    return job
