"""Handlers: the code that a job's type names."""

from .base import JobHandler
from .decorator import FunctionHandler, job_handler

__all__ = ["FunctionHandler", "JobHandler", "job_handler"]
