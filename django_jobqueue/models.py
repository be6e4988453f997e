"""The queue's tables. State changes only through the manager's transitions, never by `save()`."""

import uuid
from collections.abc import Collection
from typing import Any

from django.core import checks
from django.core.exceptions import ValidationError
from django.db import Error as DatabaseFailure
from django.db import models, router, transaction
from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from .cron import MOST_CATCH_UP, problems_of
from .ids import uuid7
from .managers import JobManager, JobQuerySet
from .states import (
    ACTIVE_STATUSES,
    DEFAULT_QUEUE,
    LAST_ERROR_LENGTH,
    RETRYABLE_STATUSES,
    TERMINAL_STATUSES,
    CatchUp,
    Claim,
    Executor,
    JobStatus,
    PauseKind,
    SettleOutcome,
)


class CheckedModel(models.Model):
    """A model whose checks do not fail where the database cannot be opened."""

    class Meta:
        abstract = True

    @classmethod
    def check(cls, **options: Any) -> list[checks.CheckMessage]:
        """Return what Django finds wrong with the model; W015 tells of the database.

        Django asks SQLite whether it knows JSON, and MySQL for its version, and expects an answer.
        """
        try:
            return super().check(**options)
        except DatabaseFailure:
            return super().check(**options | {"databases": ()})


class Job(CheckedModel):
    """One piece of work of one type."""

    # What never changes comes first: of an update PostgreSQL logs what lies between the first and
    # the last changed column.
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    type = models.CharField(_("type"), max_length=200)
    queue = models.CharField(_("queue"), max_length=100, default=DEFAULT_QUEUE)
    priority = models.SmallIntegerField(
        _("priority"), default=0, help_text=_("Lower numbers run sooner.")
    )
    payload = models.JSONField(_("payload"), default=dict)
    subject_type = models.CharField(_("subject type"), max_length=100, null=True)  # noqa: DJ001
    subject_id = models.CharField(_("subject id"), max_length=200, null=True)  # noqa: DJ001
    reason = models.CharField(_("reason"), max_length=200, default="")
    dedup_key = models.CharField(_("dedup key"), max_length=400, null=True)  # noqa: DJ001
    created_at = models.DateTimeField(_("created at"))
    trace_context = models.CharField(_("trace context"), max_length=55, null=True)  # noqa: DJ001
    org_id = models.CharField(_("organisation"), max_length=100, null=True)  # noqa: DJ001

    status = models.CharField(
        _("status"), max_length=9, choices=JobStatus, default=JobStatus.PENDING
    )
    result = models.JSONField(_("result"), null=True)
    attempts = models.PositiveSmallIntegerField(
        _("attempts"), default=0, help_text=_("How often the job was started.")
    )
    max_attempts = models.PositiveSmallIntegerField(_("max attempts"), null=True)
    rate_limit_hits = models.PositiveSmallIntegerField(_("rate limit hits"), default=0)
    rate_limited_at = models.DateTimeField(_("rate limited at"), null=True)
    last_error = models.CharField(_("last error"), max_length=LAST_ERROR_LENGTH, default="")
    scheduled_for = models.DateTimeField(
        _("scheduled for"), null=True, help_text=_("Empty when the job may run now.")
    )
    ready_at = models.DateTimeField(_("ready at"))
    started_at = models.DateTimeField(_("started at"), null=True)
    finished_at = models.DateTimeField(_("finished at"), null=True)
    executor = models.CharField(
        _("executor"), max_length=6, choices=Executor, default=Executor.NONE
    )
    node_id = models.UUIDField(_("node id"), null=True)
    worker = models.CharField(_("worker"), max_length=200, default="")
    claim_token = models.UUIDField(_("claim token"), null=True)
    lease_expires_at = models.DateTimeField(_("lease expires at"), null=True)
    lease_seconds = models.FloatField(_("lease seconds"), null=True)

    claim_lost = False
    """True on the instance a handler runs with, once its claim is known to be lost."""

    objects = JobManager.from_queryset(JobQuerySet)()

    class Meta:
        verbose_name = _("job")
        verbose_name_plural = _("jobs")
        default_permissions = ("view", "delete")
        permissions = [
            ("view_job_payload", _("Can view payloads, results and errors of jobs")),
            ("retry_job", _("Can retry jobs")),
            ("cancel_job", _("Can cancel jobs")),
            ("reset_stuck_jobs", _("Can reset stuck jobs")),
        ]
        constraints = [
            models.CheckConstraint(
                name="jobqueue_job_status_known", condition=Q(status__in=JobStatus.values)
            ),
            models.CheckConstraint(
                name="jobqueue_job_executor_known", condition=Q(executor__in=Executor.values)
            ),
            models.CheckConstraint(
                name="jobqueue_job_token_while_running",
                condition=Q(status=JobStatus.RUNNING, claim_token__isnull=False)
                | (~Q(status=JobStatus.RUNNING) & Q(claim_token__isnull=True)),
            ),
            models.CheckConstraint(
                name="jobqueue_job_lease_only_running",
                condition=Q(status=JobStatus.RUNNING) | Q(lease_expires_at__isnull=True),
            ),
            models.CheckConstraint(
                name="jobqueue_job_subject_whole",
                condition=Q(subject_type__isnull=True, subject_id__isnull=True)
                | Q(subject_type__isnull=False, subject_id__isnull=False),
            ),
            models.UniqueConstraint(
                name="jobqueue_job_active_dedup_key",
                fields=["dedup_key"],
                condition=Q(status__in=ACTIVE_STATUSES, dedup_key__isnull=False),
            ),
        ]
        # Those that find ready jobs differ by database: see the end of the first migration.
        indexes = [
            models.Index(
                name="jobqueue_job_scheduled",
                fields=["scheduled_for"],
                condition=Q(status=JobStatus.PENDING, scheduled_for__isnull=False),
            ),
            models.Index(
                name="jobqueue_job_running",
                fields=["lease_expires_at"],
                condition=Q(status=JobStatus.RUNNING),
            ),
            models.Index(
                name="jobqueue_job_finished",
                fields=["finished_at"],
                condition=Q(status__in=TERMINAL_STATUSES),
            ),
            models.Index(
                name="jobqueue_job_subject",
                fields=["subject_type", "subject_id"],
                condition=Q(subject_id__isnull=False),
            ),
            # For people who look for these; jobs that succeed never touch it.
            models.Index(
                name="jobqueue_job_unsuccessful",
                fields=["status", "id"],
                condition=Q(status__in=RETRYABLE_STATUSES),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.id}"

    @property
    def claim(self) -> Claim | None:
        """The claim that holds the job, as this instance was read; None when nobody does."""
        return None if self.claim_token is None else Claim(self.pk, self.claim_token)


class JobAttempt(CheckedModel):
    """One attempt that did not succeed, written by the statement that ended it."""

    job = models.ForeignKey(
        Job, on_delete=models.CASCADE, related_name="attempt_history", verbose_name=_("job")
    )
    number = models.PositiveSmallIntegerField(_("number"))
    outcome = models.CharField(_("outcome"), max_length=19, choices=SettleOutcome)
    started_at = models.DateTimeField(_("started at"), null=True)
    finished_at = models.DateTimeField(_("finished at"))
    executor = models.CharField(_("executor"), max_length=6, choices=Executor)
    worker = models.CharField(_("worker"), max_length=200)
    claim_token = models.UUIDField(_("claim token"), null=True)
    exception_class = models.CharField(_("exception class"), max_length=200, default="")
    message = models.TextField(_("message"), default="")
    traceback = models.TextField(_("traceback"), default="")

    class Meta:
        verbose_name = _("attempt")
        verbose_name_plural = _("attempts")
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.job_id} #{self.number}: {self.outcome}"


class JobStatsRollup(CheckedModel):
    """What purged jobs of one type add up to, so that totals outlive the rows."""

    type = models.CharField(_("type"), max_length=200, unique=True)
    succeeded_count = models.PositiveBigIntegerField(pgettext_lazy("jobs", "succeeded"), default=0)
    failed_count = models.PositiveBigIntegerField(pgettext_lazy("jobs", "failed"), default=0)
    cancelled_count = models.PositiveBigIntegerField(pgettext_lazy("jobs", "cancelled"), default=0)
    duration_sum = models.FloatField(
        _("duration sum"), default=0.0, help_text=_("Seconds, of the counted samples.")
    )
    duration_samples = models.PositiveBigIntegerField(_("duration samples"), default=0)

    class Meta:
        verbose_name = _("statistics of purged jobs")
        verbose_name_plural = _("statistics of purged jobs")
        default_permissions = ("view",)

    def __str__(self) -> str:
        return self.type


class QueueControl(CheckedModel):
    """A pause of a queue or a type: it lasts, across restarts, as long as its row."""

    kind = models.CharField(_("kind"), max_length=5, choices=PauseKind)
    name = models.CharField(_("name"), max_length=200)
    reason = models.CharField(_("reason"), max_length=200, default="")
    paused_at = models.DateTimeField(_("paused at"))

    class Meta:
        verbose_name = _("pause")
        verbose_name_plural = _("pauses")
        default_permissions = ("view",)
        permissions = [("pause_queue", _("Can pause and resume queues and job types"))]
        constraints = [
            models.UniqueConstraint(name="jobqueue_control_once", fields=["kind", "name"]),
            models.CheckConstraint(
                name="jobqueue_control_kind_known", condition=Q(kind__in=PauseKind.values)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} {self.name}"


class WorkerProcess(CheckedModel):
    """A worker process as it last reported itself. For people to look at: nothing depends on it."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    host = models.CharField(_("host"), max_length=150)
    pid = models.PositiveIntegerField(_("process id"))
    version = models.CharField(_("version"), max_length=50)
    mode = models.CharField(_("mode"), max_length=6)
    slots = models.PositiveIntegerField(_("slots"))
    busy = models.PositiveIntegerField(_("busy slots"), default=0)
    types = models.JSONField(_("types"), default=list)
    queues = models.JSONField(_("queues"), null=True, help_text=_("Empty: every queue."))
    started_at = models.DateTimeField(_("started at"))
    seen_at = models.DateTimeField(_("seen at"))

    class Meta:
        verbose_name = _("worker process")
        verbose_name_plural = _("worker processes")
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.host}:{self.pid}"


TICKS = ("last_tick_at", "next_tick_at")

REFUSALS = {
    "cron": _(
        "“%(value)s” names no time. Expected: minute, hour, day of month, month and day of week, "
        "such as “0 3 * * *”."
    ),
    "timezone": _(
        "“%(value)s” is no time zone that is known here. Expected: a name such as “UTC” or "
        "“Europe/Berlin”."
    ),
    "limit": _("The limit is a whole number from 1 to %(most)s."),
    "payload": _("The payload is no JSON object: it has to be written in braces."),
}
"""What people read beside a field of a schedule that could never fire."""


class Schedule(CheckedModel):
    """A job that is enqueued again and again, at the ticks of a cron expression."""

    name = models.CharField(_("name"), max_length=200, unique=True)
    type = models.CharField(_("type"), max_length=200)
    queue = models.CharField(_("queue"), max_length=100, default=DEFAULT_QUEUE)
    priority = models.SmallIntegerField(_("priority"), default=0)
    payload = models.JSONField(_("payload"), default=dict, blank=True)
    cron = models.CharField(_("cron expression"), max_length=200)
    timezone = models.CharField(_("time zone"), max_length=100, default="UTC")
    catch_up = models.CharField(_("catch-up"), max_length=4, choices=CatchUp, default=CatchUp.SKIP)
    limit = models.PositiveIntegerField(
        _("catch-up limit"), default=10, help_text=_("Most jobs made for missed ticks at once.")
    )
    paused = models.BooleanField(_("paused"), default=False)
    declared_in_code = models.BooleanField(_("declared in code"), default=False, editable=False)
    last_tick_at = models.DateTimeField(_("last tick"), null=True, editable=False)
    next_tick_at = models.DateTimeField(_("next tick"), null=True, editable=False)

    class Meta:
        verbose_name = _("schedule")
        verbose_name_plural = _("schedules")
        indexes = [
            models.Index(
                name="jobqueue_schedule_next",
                fields=["next_tick_at"],
                condition=Q(paused=False),
            )
        ]

    def __str__(self) -> str:
        return self.name

    def save(self, **options: Any) -> None:
        """Save what people edit. The ticks of a stored row are the workers', and stay.

        Another rhythm, and the end of a pause, make the workers count from now.
        """
        if self._state.adding:
            super().save(**options)
            return
        asked = options.get("update_fields")
        edited = self.edited_fields() - self.get_deferred_fields()
        fields = edited if asked is None else frozenset(asked)
        using = options.get("using") or router.db_for_write(type(self), instance=self)
        with transaction.atomic(using=using):
            rows = type(self)._base_manager.using(using).filter(pk=self.pk)
            restarts = self.restarts(fields)
            if restarts and rows.filter(restarts).update(next_tick_at=None):
                self.next_tick_at = None
            super().save(**{**options, "update_fields": fields})

    def clean(self) -> None:
        """Refuse what could never fire, as `@schedule` does."""
        problems = set(problems_of(self.cron, self.timezone, self.limit))
        # One that was not read is not written either, and may be too large to read.
        if "payload" not in self.get_deferred_fields() and not isinstance(self.payload, dict):
            problems.add("payload")
        if problems:
            raise ValidationError(
                {
                    field: ValidationError(
                        REFUSALS[field],
                        "invalid",
                        {"value": getattr(self, field), "most": MOST_CATCH_UP},
                    )
                    for field in problems
                }
            )

    def edited_fields(self) -> frozenset[str]:
        """Return the names of the columns that people edit."""
        fields = self._meta.concrete_fields
        return frozenset(f.name for f in fields if not f.primary_key and f.name not in TICKS)

    def restarts(self, fields: Collection[str]) -> Q:
        """Return what the stored row looks like if saving these fields makes its next tick wrong.

        Empty when none of them could.
        """
        restarts = Q()
        for name in {"cron", "timezone"}.intersection(fields):
            restarts |= ~Q((name, getattr(self, name)))
        if "paused" in fields and not self.paused:
            restarts |= Q(paused=True)
        return restarts
