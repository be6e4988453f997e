import contextvars
import logging
import threading
from uuid import UUID

import pytest

from django_jobqueue.job_context import (
    LOG_FIELDS,
    CurrentJob,
    JobContextFilter,
    current_job,
    log_fields,
    running_job,
)

JOB = CurrentJob(
    UUID("0198f0c4-0000-7000-8000-000000000007"), "reports.build", 2, "host:1:1", "slow"
)


def filtered(**given):
    record = logging.makeLogRecord(given)
    assert JobContextFilter().filter(record) is True
    return {field: getattr(record, field) for field in LOG_FIELDS}


def test_outside_a_job_there_is_none_and_each_attribute_is_a_dash():
    assert current_job() is None
    assert set(filtered().values()) == {"-"}


def test_inside_a_job_a_record_carries_it():
    with running_job(JOB):
        assert current_job() == JOB
        fields = filtered()

    assert fields == {
        "job_id": str(JOB.id),
        "job_type": "reports.build",
        "job_attempt": 2,
        "job_worker": "host:1:1",
        "job_queue": "slow",
    }
    assert current_job() is None


def test_the_job_is_forgotten_when_the_block_raises():
    with pytest.raises(ZeroDivisionError), running_job(JOB):
        raise ZeroDivisionError

    assert current_job() is None


def test_a_record_about_another_job_keeps_what_it_says():
    other = UUID(int=1)
    with running_job(JOB):
        fields = filtered(**log_fields(other, "reports.send"))

    assert fields == {
        **dict.fromkeys(LOG_FIELDS, "-"),
        "job_id": str(other),
        "job_type": "reports.send",
    }


def test_what_a_handler_sees_cannot_be_changed():
    with pytest.raises(AttributeError):
        JOB.attempt = 3


def test_a_thread_has_the_job_only_with_a_copy_of_the_context():
    seen = []
    with running_job(JOB):
        copy = contextvars.copy_context()
        for target in (
            lambda: seen.append(current_job()),
            lambda: copy.run(lambda: seen.append(current_job())),
        ):
            thread = threading.Thread(target=target)
            thread.start()
            thread.join()

    assert seen == [None, JOB]
