"""Insights read and do nothing else: beside locked rows, and where nothing may be written."""

import re
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection, connections, transaction
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from django_jobqueue import insights
from django_jobqueue.models import Job, JobStatsRollup, QueueControl, WorkerProcess
from tests.aliases import alias
from tests.factories import JobFactory, QueueControlFactory
from tests.insights.rows import history, worker
from tests.marks import committed, on_postgresql

READS = re.compile(r"[\s(]*(SELECT|WITH)\b")


@pytest.fixture
def busy_queue(transactional_db):
    """Rows in every table that insights read; returns a job that waits."""
    history(30, type="a")
    history(2, type="a", failed=True)
    worker("a")
    JobFactory(type="a", running=True, worker="web:1:0")
    JobFactory(type="a", scheduled=True)
    JobStatsRollup.objects.create(type="a", succeeded_count=5)
    QueueControlFactory(kind="type", name="held")
    return JobFactory(type="a")


def everything(job):
    insights.overview(messages=True)
    insights.etas()
    insights.eta("a")
    return insights.eta(job), insights.position(job)


@contextmanager
def read_only():
    """Let the database refuse every write of the default connection."""
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = on")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SET default_transaction_read_only = off")


@committed
def test_every_statement_is_a_select(busy_queue):
    with CaptureQueriesContext(connection) as captured:
        everything(busy_queue)

    statements = [query["sql"] for query in captured]
    assert len(statements) > 20
    assert [sql for sql in statements if not READS.match(sql)] == []
    assert [sql for sql in statements if "FOR UPDATE" in sql or "FOR SHARE" in sql] == []


@committed
@on_postgresql
def test_all_of_it_can_be_read_where_nothing_may_be_written(busy_queue):
    with read_only():
        estimate, position = everything(busy_queue)

    assert estimate.seconds is not None
    assert position == 0


@committed
@on_postgresql
def test_the_page_answers_completely_while_every_row_is_locked(busy_queue, client):
    client.force_login(User.objects.create_superuser("root"))
    address = reverse("admin:django_jobqueue_insights")
    with alias("elsewhere"):
        connections["elsewhere"].connect()
        with transaction.atomic(using="elsewhere"):
            for model in (Job, WorkerProcess, JobStatsRollup, QueueControl):
                rows = model.objects.using("elsewhere").select_for_update()
                assert list(rows), model
            Job.objects.using("elsewhere").update(reason="changed, and not committed")
            with connection.cursor() as cursor:
                cursor.execute("SET statement_timeout = '5s'")
                cursor.execute("SET lock_timeout = '100ms'")
            try:
                response = client.get(address)
            finally:
                with connection.cursor() as cursor:
                    cursor.execute("RESET statement_timeout")
                    cursor.execute("RESET lock_timeout")

    assert response.status_code == 200
    assert "What went wrong" in response.text
    assert "Live workers" in response.text
    assert response.context["overview"].now.total.active == 3
    assert response.context["overview"].durations.overall.samples == 30


@committed
def test_a_look_at_the_moment_is_six_statements(busy_queue, django_assert_max_num_queries):
    with django_assert_max_num_queries(6):
        insights.now()


@committed
def test_a_forecast_reads_once_what_all_jobs_share(busy_queue, django_assert_max_num_queries):
    jobs = [JobFactory(type="a") for _ in range(5)]
    forecast = insights.Forecast.now()
    forecast.eta(busy_queue)

    with django_assert_max_num_queries(len(jobs)):
        assert all(forecast.eta(job).seconds for job in jobs)


@committed
def test_a_reading_is_of_one_alias(busy_queue):
    with alias("reporting"):
        connections["reporting"].connect()
        assert insights.now(using="reporting").total.active == 3
        assert insights.overview(timedelta(days=1), using="reporting").activity.failed == 2
