"""Rows in any state, written as they would look after the queue's own transitions."""

import uuid
from datetime import timedelta

import factory
from django.utils import timezone
from factory.django import DjangoModelFactory

from django_jobqueue import models
from django_jobqueue.states import Executor, JobStatus, SettleOutcome

LEASE = timedelta(seconds=90)


class JobFactory(DjangoModelFactory):
    """A ready job; `JobFactory(running=True)` and its like put it elsewhere."""

    class Meta:
        model = models.Job

    class Params:
        scheduled = factory.Trait(
            scheduled_for=factory.LazyFunction(lambda: timezone.now() + timedelta(hours=1))
        )
        due = factory.Trait(
            scheduled_for=factory.LazyFunction(lambda: timezone.now() - timedelta(seconds=1))
        )
        started = factory.Trait(
            attempts=1,
            max_attempts=3,
            executor=Executor.SERVER,
            worker="host:1:0",
            started_at=factory.LazyFunction(timezone.now),
            lease_seconds=LEASE.total_seconds(),
        )
        running = factory.Trait(
            started=True,
            status=JobStatus.RUNNING,
            claim_token=factory.LazyFunction(uuid.uuid4),
            lease_expires_at=factory.LazyAttribute(lambda job: job.started_at + LEASE),
        )
        succeeded = factory.Trait(
            started=True,
            status=JobStatus.SUCCEEDED,
            finished_at=factory.LazyFunction(timezone.now),
            result={"done": True},
        )
        failed = factory.Trait(
            started=True,
            status=JobStatus.FAILED,
            finished_at=factory.LazyFunction(timezone.now),
            last_error="ValueError: as asked",
        )
        cancelled = factory.Trait(
            status=JobStatus.CANCELLED, finished_at=factory.LazyFunction(timezone.now)
        )

    type = "test.echo"
    created_at = factory.LazyFunction(timezone.now)
    ready_at = factory.LazyAttribute(lambda job: job.scheduled_for or job.created_at)


class JobAttemptFactory(DjangoModelFactory):
    class Meta:
        model = models.JobAttempt

    job = factory.SubFactory(JobFactory, failed=True)
    number = 1
    outcome = SettleOutcome.FAILED
    started_at = factory.LazyAttribute(lambda attempt: attempt.job.started_at)
    finished_at = factory.LazyFunction(timezone.now)
    executor = Executor.SERVER
    worker = "host:1:0"
    claim_token = factory.LazyFunction(uuid.uuid4)
    exception_class = "builtins.ValueError"
    message = "as asked"


class QueueControlFactory(DjangoModelFactory):
    class Meta:
        model = models.QueueControl

    kind = "queue"
    name = factory.Sequence("queue-{}".format)
    paused_at = factory.LazyFunction(timezone.now)


class ScheduleFactory(DjangoModelFactory):
    class Meta:
        model = models.Schedule

    name = factory.Sequence("schedule-{}".format)
    type = "test.echo"
    cron = "0 3 * * *"


class WorkerProcessFactory(DjangoModelFactory):
    """A worker process that has just reported itself."""

    class Meta:
        model = models.WorkerProcess

    host = "box"
    pid = 7
    version = "1"
    mode = "all"
    slots = 4
    started_at = factory.LazyFunction(timezone.now)
    seen_at = factory.LazyAttribute(lambda process: process.started_at)
