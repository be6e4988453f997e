"""The worker's connections keep what libpq takes from the environment."""

import pytest
from django.db import connections

from django_jobqueue.worker.queue_connection import queue_connection
from tests.marks import on_postgresql

pytestmark = [on_postgresql, pytest.mark.django_db]


def test_options_of_the_environment_count(monkeypatch):
    monkeypatch.setenv("PGOPTIONS", "-c search_path=tenant,public")
    connection = queue_connection("default")
    try:
        with connection.cursor() as cursor:
            cursor.execute("SHOW search_path")
            assert cursor.fetchone() == ("tenant,public",)
            cursor.execute("SHOW plan_cache_mode")
            assert cursor.fetchone() == ("force_generic_plan",)
    finally:
        connection.close()


def test_a_proxy_that_takes_no_options_is_served_without_them(monkeypatch):
    """Amazon's RDS Proxy says so in other words than PgBouncer."""
    import psycopg

    connection = connections.create_connection("default")
    plain = connection.get_new_connection

    def refuse(parameters):
        if "options" in parameters:
            raise psycopg.OperationalError(
                "connection failed: FATAL:  Feature not supported: RDS Proxy currently doesn't "
                "support command-line options."
            )
        return plain(parameters)

    monkeypatch.setattr(connection, "get_new_connection", refuse)
    from django_jobqueue.database import prepared
    from django_jobqueue.worker.planning import plan_once

    plan_once(connection)
    try:
        connection.ensure_connection()
    finally:
        prepared.unprepared_aliases.discard("default")
        connection.close()
