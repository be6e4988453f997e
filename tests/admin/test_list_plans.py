"""What the list reads of a crowded table: never all of it.

How much the list counts and looks at is a constant, made smaller here as the table is.
"""

import json

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_jobqueue.admin import choices, paging
from django_jobqueue.models import Job
from tests.admin import crowd
from tests.admin.conftest import job_list
from tests.marks import on_postgresql

pytestmark = [on_postgresql, pytest.mark.django_db]

ROWS = 20_000
LIMIT = 1_000
MOST_QUERIES = 8
UNSERVED_LIMIT = 100
FEW = ROWS // 3


@pytest.fixture(scope="module")
def crowded(django_db_setup, django_db_blocker):
    with django_db_blocker.unblock():
        crowd.fill(ROWS)
        try:
            yield
        finally:
            crowd.clear()


@pytest.fixture
def reader(crowded, viewer, monkeypatch):
    """Who looks at a crowded list, with limits as small as the table."""
    monkeypatch.setattr(paging, "COUNT_LIMIT", LIMIT)
    monkeypatch.setattr(paging, "UNSERVED_COUNT_LIMIT", UNSERVED_LIMIT)
    monkeypatch.setattr(choices, "NEWEST", LIMIT)
    viewer.allow("view_job_payload")
    return viewer


def queries_of(client, **query):
    with CaptureQueriesContext(connection) as queries:
        response = job_list(client, **query)
    assert response.status_code == 200
    return [entry["sql"] for entry in queries]


def nodes(top):
    yield top
    for node in top.get("Plans", ()):
        yield from nodes(node)


def rows_read(sql):
    """How many rows of the jobs table a query looked at, by EXPLAIN ANALYZE."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}")
        (answer,) = cursor.fetchone()
    (found,) = answer if isinstance(answer, list) else json.loads(answer)
    return sum(
        node["Actual Loops"]
        * (
            node["Actual Rows"]
            + node.get("Rows Removed by Filter", 0)
            + node.get("Rows Removed by Index Recheck", 0)
        )
        for node in nodes(found["Plan"])
        if node.get("Relation Name") == crowd.TABLE
    )


def read_by(client, **query):
    """How many rows each query on jobs looked at."""
    sent = queries_of(client, **query)
    return [rows_read(sql) for sql in sent if crowd.TABLE in sql]


def test_the_list_opens_in_eight_queries_and_counts_no_further_than_its_limit(reader):
    sent = queries_of(reader)

    assert len(sent) <= MOST_QUERIES
    (count,) = [sql for sql in sent if "COUNT(" in sql]
    assert f"LIMIT {LIMIT + 1}" in count
    assert rows_read(count) == LIMIT + 1


@pytest.mark.parametrize(
    "query",
    [
        *({}, {"p": "2"}, {"p": "10"}, {"o": "-5"}, {"o": "-6"}),
        *({"status": state} for state in ("pending", "scheduled", "running", "stuck")),
        *({"status": state} for state in ("succeeded", "failed", "cancelled")),
        {"status": "failed", "p": "2"},
        *({"activity": time} for time in ("hour", "day", "week", "month")),
        *({"activity": time} for time in ("before-day", "before-week", "before-month")),
        {"activity": "hour", "status": "failed"},
        {"activity": "before-week", "status": "failed"},
        {"status": "failed", "type": "app.type1"},
        {"status": "pending", "type": "rare"},
        {"activity": "hour", "type": "rare"},
        {"activity": "day", "queue": "rare"},
        {"activity": "before-month", "queue": "rare"},
        {"queue": "queue1"},
        {"type": "app.type1"},
        {"type": "app.type1", "status": "succeeded"},
        *({"q": words} for words in ("kind4:1", "1", "7", "no-such-thing", "01234567")),
    ],
    ids=str,
)
def test_no_query_of_the_list_reads_the_whole_table(reader, query):
    read = read_by(reader, **query)

    assert len(read) >= 2
    assert max(read) < FEW


@pytest.mark.parametrize("length", [8, 18, 36])
def test_a_search_by_id_reads_the_rows_it_finds(reader, length):
    job = Job.objects.order_by("-pk")[ROWS // 2]

    *_, read = read_by(reader, q=str(job.pk)[:length])

    assert read == 1


@pytest.mark.parametrize("query", [{"type": "rare"}, {"queue": "rare"}, {"type": "none"}], ids=str)
def test_a_name_that_few_jobs_have_is_looked_for_once_and_never_counted(reader, query):
    """No index serves it: each settled job would pay for that."""
    sent = queries_of(reader, **query)

    assert [sql for sql in sent if "COUNT(" in sql] == []
    assert len([sql for sql in sent if rows_read(sql) >= FEW]) == 1


def test_more_jobs_on_a_page_make_no_more_queries(reader):
    few, many = queries_of(reader, status="running"), queries_of(reader, status="failed")

    assert len(few) + 1 == len(many)  # What does not fit on one page is counted.
