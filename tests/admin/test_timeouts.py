"""A list that the database has no more time for."""

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, ProgrammingError, connection, connections, transaction

from django_jobqueue.admin.filters import StateFilter
from django_jobqueue.database.errors import is_cancelled
from tests.admin.conftest import job_list
from tests.admin.pages import address
from tests.aliases import alias
from tests.factories import JobFactory, ScheduleFactory
from tests.marks import committed, on_postgresql

ADVICE = "This view took longer than the database allows"


@pytest.fixture
def boss(client, transactional_db):
    client.force_login(User.objects.create_superuser("boss"))
    return client


def make_slow(monkeypatch, sql):
    """Let every list evaluate an expression for each job that it looks at."""
    plain = StateFilter.queryset

    def slow(self, request, queryset):
        return plain(self, request, queryset).extra(where=[sql])

    monkeypatch.setattr(StateFilter, "queryset", slow)


@pytest.fixture
def slow_list(boss, monkeypatch):
    """A list that the database is too slow for, by the timeout of its own connection."""
    JobFactory()
    make_slow(monkeypatch, "pg_sleep(5) IS NOT NULL")
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = '100ms'")
    yield boss
    with connection.cursor() as cursor:
        cursor.execute("RESET statement_timeout")


@on_postgresql
def test_a_list_that_takes_too_long_says_so_and_what_helps(slow_list):
    response = job_list(slow_list, type="test.echo")

    assert response.status_code == 503
    assert ADVICE in response.text
    assert "Narrow the filters" in response.text
    assert 'href="/admin/django_jobqueue/job/">Show it without filters' in response.text


@on_postgresql
def test_without_filters_there_is_nothing_to_narrow(slow_list):
    response = job_list(slow_list)

    assert response.status_code == 503
    assert "Narrow the filters" not in response.text
    assert "Try again" in response.text


@on_postgresql
def test_the_connection_serves_the_next_page(slow_list, monkeypatch):
    assert job_list(slow_list).status_code == 503

    monkeypatch.undo()

    assert job_list(slow_list).status_code == 200


@on_postgresql
def test_a_site_with_a_transaction_for_each_request_gets_the_page_too(slow_list, settings):
    connection.settings_dict["ATOMIC_REQUESTS"] = True
    try:
        assert job_list(slow_list).status_code == 503
    finally:
        connection.settings_dict["ATOMIC_REQUESTS"] = False


def test_any_other_error_of_the_database_is_raised(boss, monkeypatch):
    make_slow(monkeypatch, "no_such_column = 1")

    with pytest.raises((OperationalError, ProgrammingError), match="no_such_column"):
        job_list(boss)


def run(*statements):
    with transaction.atomic(), connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@on_postgresql
@committed
def test_only_a_cancelled_statement_counts_as_cancelled():
    with pytest.raises(OperationalError) as timeout:
        run("SET LOCAL statement_timeout = '10ms'", "SELECT pg_sleep(5)")
    with pytest.raises(ProgrammingError) as other:
        run("SELECT no_such_column")

    assert is_cancelled(timeout.value)
    assert not is_cancelled(other.value)


def test_the_codes_of_mysql_and_mariadb_are_known():
    def raised(code):
        error = OperationalError(code, "text")
        error.__cause__ = Exception(code, "text")
        return error

    assert [is_cancelled(raised(code)) for code in (1969, 3024, 1317, 1213)] == [
        *(True, True, True),
        False,
    ]
    assert not is_cancelled(OperationalError("disk full"))


@committed
@on_postgresql
@pytest.mark.parametrize("page", ["job", "schedule"])
def test_a_history_whose_rows_are_locked_says_so_too(boss, page):
    row = JobFactory() if page == "job" else ScheduleFactory()
    with alias("elsewhere"):
        connections["elsewhere"].connect()
        with transaction.atomic(using="elsewhere"), connection.cursor() as cursor:
            with connections["elsewhere"].cursor() as elsewhere:
                elsewhere.execute(f"LOCK TABLE django_jobqueue_{page} IN ACCESS EXCLUSIVE MODE")
            cursor.execute("SET lock_timeout = '100ms'")
            try:
                response = boss.get(address(f"{page}_history", row.pk))
            finally:
                cursor.execute("RESET lock_timeout")

    assert response.status_code == 503
    assert ADVICE in response.text
