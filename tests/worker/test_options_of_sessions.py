"""The worker's connections keep what libpq takes from the environment."""

from contextlib import closing

import pytest
from django.db import connections

from django_jobqueue.worker.queue_connection import queue_connection
from tests.aliases import alias
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


@pytest.mark.parametrize("named_by", ["OPTIONS", "environment"])
def test_options_of_a_service_count(monkeypatch, tmp_path, named_by):
    services = tmp_path / "services.conf"
    services.write_text("[queue]\noptions=-c search_path=tenant,public\n")
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    options = {"service": "queue"} if named_by == "OPTIONS" else {}
    if named_by == "environment":
        monkeypatch.setenv("PGSERVICE", "queue")

    with alias("serviced", OPTIONS=options) as name, closing(queue_connection(name)) as connection:
        connection.connect()
        assert connection.connection.execute("SHOW search_path").fetchone() == ("tenant,public",)
        assert connection.connection.prepare_threshold is None


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
