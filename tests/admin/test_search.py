"""The search over jobs."""

from uuid import UUID

import pytest

from django_jobqueue.database.subjects import subject_types
from django_jobqueue.ids import uuid7
from django_jobqueue.models import Job
from tests.admin.conftest import job_list
from tests.factories import JobFactory


def found(client, words):
    response = job_list(client, q=words)
    assert response.status_code == 200
    return {job.pk for job in response.context["cl"].result_list}


@pytest.fixture
def jobs(viewer):
    return [JobFactory(subject_type="report", subject_id="7"), JobFactory()]


@pytest.mark.parametrize(
    "spelled",
    [
        str,
        lambda pk: pk.hex,
        lambda pk: str(pk).upper(),
        lambda pk: f"  {pk} ",
        lambda pk: str(pk)[:30],
        lambda pk: f"{str(pk)[:30]}…",
        lambda pk: f"{str(pk)[:13]}…{str(pk)[-6:]}",
    ],
    ids=["whole", "no dashes", "upper case", "spaces", "beginning", "cut off", "as shown"],
)
def test_a_job_is_found_by_its_id(viewer, jobs, spelled):
    assert found(viewer, spelled(jobs[0].pk)) == {jobs[0].pk}


def test_the_beginning_of_an_id_finds_all_jobs_that_share_it(viewer, jobs):
    shared = jobs[0].pk.hex[:8]
    others = {job.pk for job in jobs if job.pk.hex.startswith(shared)}

    assert found(viewer, shared) == others


def test_the_end_of_a_shortened_id_tells_jobs_of_one_moment_apart(viewer):
    moment = uuid7().int & ~0xFFFF
    one, other = (JobFactory(pk=UUID(int=moment | number)).pk for number in (1, 2))
    head = str(one)[:13]

    assert found(viewer, head) == {one, other}
    assert found(viewer, f"{head}…{str(other)[-6:]}") == {other}
    assert found(viewer, f"{head}…ffffff") == set()


@pytest.mark.parametrize("words", ["report:7", "7", " report:7 "])
def test_a_job_is_found_by_its_subject(viewer, jobs, words):
    JobFactory(subject_type="report", subject_id="77")

    assert found(viewer, words) == {jobs[0].pk}


def test_the_id_of_a_subject_alone_is_found_whatever_its_type(viewer, jobs):
    other = JobFactory(subject_type="another", subject_id="7")

    assert found(viewer, "7") == {jobs[0].pk, other.pk}
    assert found(viewer, "another:7") == {other.pk}


def test_type_and_id_of_a_subject_may_contain_colons(viewer):
    job = JobFactory(subject_type="app:report", subject_id="urn:7")

    assert found(viewer, "app:report:urn:7") == {job.pk}
    assert found(viewer, "urn:7") == {job.pk}


def test_a_subject_is_found_whose_id_looks_like_that_of_a_job(viewer, jobs):
    about = JobFactory(subject_type="job", subject_id=str(jobs[0].pk))

    assert found(viewer, str(jobs[0].pk)) == {jobs[0].pk, about.pk}


@pytest.mark.parametrize(
    "words",
    [
        *("x", "nothing", "test.echo", "zzzzzzzz-zzzz", "-", "--------", ":", "::::::::::::::"),
        *(
            "%",
            "'",
            "report",
            "report:",
            ":7",
            "report:8",
            "0" * 33,
            "01a22def…xyz",
            "…",
            "…abcdef",
            "f" * 5_000,
            "7" * 300,
        ),
    ],
)
def test_words_that_name_no_job_find_none(viewer, jobs, words):
    assert found(viewer, words) == set()


def test_no_words_are_no_search(viewer, jobs):
    assert found(viewer, "   ") == {job.pk for job in jobs}


def test_a_search_counts_within_the_filters(viewer, jobs):
    other = JobFactory(failed=True, subject_type="report", subject_id="7")

    response = job_list(viewer, q="report:7", status="failed")

    assert [job.pk for job in response.context["cl"].result_list] == [other.pk]


@pytest.mark.django_db
def test_types_of_subjects_are_known_once_each_in_order_up_to_a_limit():
    table = Job._meta.db_table
    assert subject_types(table, "default", 10) == []
    for name in ("c", "a", "b", "a"):
        JobFactory(subject_type=name, subject_id="1")
    JobFactory()

    assert subject_types(table, "default", 10) == ["a", "b", "c"]
    assert subject_types(table, "default", 2) == ["a", "b"]
