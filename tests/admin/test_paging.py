"""The pages of the list, which is never counted in full."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_jobqueue.admin import job_list as listing
from django_jobqueue.admin import paging
from tests.admin.conftest import job_list
from tests.factories import JobFactory


@pytest.fixture
def small_pages(monkeypatch):
    """Pages of ten jobs, and counts up to thirty."""
    monkeypatch.setattr(listing.JobList, "list_per_page", 10)
    monkeypatch.setattr(paging, "COUNT_LIMIT", 30)


def counts(queries):
    return [query["sql"] for query in queries if "COUNT(" in query["sql"]]


def shown(response):
    return len(response.context["cl"].result_list)


def test_what_fits_on_one_page_is_not_counted(viewer, small_pages):
    JobFactory.create_batch(10)

    with CaptureQueriesContext(connection) as queries:
        response = job_list(viewer)

    assert counts(queries) == []
    assert (shown(response), response.context["cl"].result_count) == (10, 10)
    assert "10 jobs" in response.text


def test_the_last_page_is_not_counted_either(viewer, small_pages):
    JobFactory.create_batch(23)

    with CaptureQueriesContext(connection) as queries:
        response = job_list(viewer, p="3")

    assert counts(queries) == []
    assert (shown(response), response.context["cl"].result_count) == (3, 23)


def test_a_page_in_between_is_counted_up_to_the_limit(viewer, small_pages):
    JobFactory.create_batch(23)

    with CaptureQueriesContext(connection) as queries:
        response = job_list(viewer, p="2")

    (count,) = counts(queries)
    assert "LIMIT 31" in count
    assert (shown(response), response.context["cl"].result_count) == (10, 23)
    assert "More than" not in response.text


@pytest.mark.parametrize(("jobs", "more"), [(30, False), (31, True), (45, True)])
def test_beyond_the_limit_the_list_says_that_there_are_more(viewer, small_pages, jobs, more):
    JobFactory.create_batch(jobs)

    first, last = job_list(viewer), job_list(viewer, p="3")

    assert ("More than 30 jobs." in first.text) is more
    assert ("30 jobs" in first.text) is True
    assert shown(last) == 10
    assert first.context["cl"].paginator.num_pages == 3


def test_the_limit_is_written_as_people_write_numbers(viewer, monkeypatch):
    monkeypatch.setattr(paging.CappedPaginator, "counted", paging.COUNT_LIMIT + 1)
    monkeypatch.setattr(listing.JobList, "list_per_page", 1)
    JobFactory.create_batch(2)

    assert "More than 10,000 jobs." in job_list(viewer).text


@pytest.mark.parametrize(
    ("query", "limit"),
    [
        ({"type": "test.echo"}, 20),
        ({"queue": "default", "status": "succeeded"}, 20),
        ({"type": "test.echo", "activity": "hour"}, 20),
        ({"type": "test.echo", "status": "failed"}, 30),
        ({"status": "succeeded"}, 30),
        ({"activity": "hour"}, 30),
    ],
    ids=str,
)
def test_what_no_index_finds_is_counted_less_far(viewer, small_pages, monkeypatch, query, limit):
    monkeypatch.setattr(paging, "UNSERVED_COUNT_LIMIT", 20)
    JobFactory.create_batch(31, failed=True)
    JobFactory.create_batch(31, succeeded=True)

    response = job_list(viewer, **query)

    assert response.context["cl"].result_count == limit
    assert f"More than {limit} jobs." in response.text


@pytest.mark.parametrize("number", ["0", "-1", "3", "4", "9999999999999999999999"])
def test_a_page_that_is_not_there_leads_back_to_the_list(viewer, small_pages, number):
    JobFactory.create_batch(12)

    response = job_list(viewer, p=number)

    assert (response.status_code, response.url.partition("?")[2]) == (302, "e=1")


def test_a_page_that_is_no_number_is_the_first(viewer, small_pages):
    JobFactory.create_batch(12)

    assert shown(job_list(viewer, p="x")) == 10


def test_all_jobs_at_once_are_not_to_be_had(viewer, small_pages):
    JobFactory.create_batch(12)

    response = job_list(viewer, all="")

    assert shown(response) == 10
    assert "showall" not in response.text


def test_an_empty_list_is_a_list(viewer):
    response = job_list(viewer)

    assert response.status_code == 200
    assert "0 jobs" in response.text
