"""`{% load jobqueue %}`: when a job will be done and how many are before it, in words."""

from typing import Any

from django import template
from django.template.context import Context
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ..insights import Estimate, Forecast
from ..insights.questions import alias_of
from ..models import Job
from ..states import JobStatus
from ..wording import estimated

register = template.Library()

FORECASTS = "django_jobqueue.forecasts"

ENDED = {
    JobStatus.SUCCEEDED: lambda: _("done"),
    JobStatus.FAILED: lambda: _("failed"),
    JobStatus.CANCELLED: lambda: _("cancelled"),
}


@register.filter("job_eta")
def job_eta_filter(job: Any) -> str:
    """`{{ job|job_eta }}`: when a job will be done. For a list of jobs the tag is cheaper."""
    return eta_in_words(Forecast.now(alias_of(job, None)), job) if isinstance(job, Job) else ""


@register.simple_tag(takes_context=True)
def job_eta(context: Context, job: Any) -> str:
    """`{% job_eta job %}`: when a job will be done.

    "about 4 minutes", "starts in about 2 hours", "running, about 2 minutes left", "done", or "not
    enough history yet". All tags of one page share one look at the queue.
    """
    return eta_in_words(forecast_of(context, job), job) if isinstance(job, Job) else ""


@register.simple_tag(takes_context=True)
def job_position(context: Context, job: Any) -> str:
    """`{% job_position job %}`: how many jobs are before a job; empty when it is not in line."""
    return position_in_words(forecast_of(context, job), job) if isinstance(job, Job) else ""


def forecast_of(context: Context, job: Job) -> Forecast:
    """Return the forecast that the tags of one rendering share for the job's database."""
    alias = alias_of(job, None)
    shared: Any = context.render_context
    forecasts: dict[str, Forecast] = shared.setdefault(FORECASTS, {})
    if alias not in forecasts:
        forecasts[alias] = Forecast.now(alias)
    return forecasts[alias]


def eta_in_words(forecast: Forecast, job: Job) -> str:
    """Return when a job will be done, as its owner wants to read it."""
    if job.status in ENDED:
        return ENDED[JobStatus(job.status)]()
    runs = job.status == JobStatus.RUNNING
    if not runs and forecast.is_paused(job):
        return _("paused")
    estimate = forecast.eta(job)
    if estimate is None or estimate.seconds is None:
        return _("running, not enough history yet") if runs else _("not enough history yet")
    if runs:
        return _("running, about %(time)s left") % {"time": estimated(estimate.seconds)}
    return waiting_in_words(estimate, due=job.scheduled_for is None)


def waiting_in_words(estimate: Estimate, *, due: bool) -> str:
    """Return when a waiting job will be done, or start where its time has not come."""
    if not due and estimate.starts_in:
        return _("starts in about %(time)s") % {"time": estimated(estimate.starts_in)}
    words = _("more than %(time)s") if estimate.at_least else _("about %(time)s")
    return words % {"time": estimated(estimate.seconds or 0.0)}


def position_in_words(forecast: Forecast, job: Job) -> str:
    """Return how many jobs are before a job."""
    line = forecast.line(job)
    if line is None:
        return ""
    count = len(line.lanes)
    if line.cut:
        return _("more than %(count)s jobs before it") % {
            "count": number_format(count, force_grouping=True)
        }
    if not count:
        return _("next")
    words = ngettext("%(count)s job before it", "%(count)s jobs before it", count)
    return words % {"count": number_format(count, force_grouping=True)}
