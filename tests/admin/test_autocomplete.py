"""Django's own address for choosing related rows, which serves every model with a search."""

from django.urls import reverse

from tests.admin.conftest import SECRET
from tests.factories import JobFactory


def choices(client, term):
    query = {"app_label": "django_jobqueue", "model_name": "jobattempt", "field_name": "job"}
    return client.get(reverse("admin:autocomplete"), {**query, "term": term})


def test_it_names_jobs_by_type_and_id_and_finds_none_by_what_they_carry(viewer, failed_job):
    JobFactory()

    everything, by_error = choices(viewer, ""), choices(viewer, SECRET)

    assert len(everything.json()["results"]) == 2
    assert SECRET.encode() not in everything.content
    assert by_error.json()["results"] == []
