"""Jobs in the admin. What a job carries is for those who may view payloads, and only for them."""

from django.contrib import admin

from ..models import Job
from .actions import JobActions
from .detail import JobDetail
from .job_list import JobList


@admin.register(Job)
class JobAdmin(JobActions, JobDetail, JobList):
    """The list of jobs, what can be done to them, and one job with its attempts."""
