"""The probes as checks of django-health-check, with the library itself."""

from datetime import timedelta

import pytest
from django.urls import path
from health_check.views import HealthCheckView

from django_jobqueue import healthfile
from tests.factories import JobFactory
from tests.managers.rows import now

MODULE = "django_jobqueue.contrib.health_check"

urlpatterns = [
    path(
        "ht/",
        HealthCheckView.as_view(
            checks=[f"{MODULE}.JobQueue", f"{MODULE}.JobQueueReady", f"{MODULE}.JobQueueWorker"]
        ),
    )
]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls(__name__)]


@pytest.fixture
def worker(jobqueue, tmp_path):
    jobqueue(HEALTH_FILE=str(tmp_path / "worker"))
    healthfile.write(str(tmp_path / "worker"))


def test_a_healthy_site_is_200_and_all_ok(client, worker):
    response = client.get("/ht/?format=json")

    assert response.status_code == 200, response.text
    assert set(response.json().values()) == {"OK"}
    assert len(response.json()) == 3


def test_an_overdue_queue_is_an_error_with_its_code_only(client, worker):
    moment = now() - timedelta(seconds=5000)
    JobFactory(type="secret.name", created_at=moment, ready_at=moment)

    response = client.get("/ht/?format=json")

    assert response.status_code == 500
    said = response.json()
    assert [text for text in said.values() if text != "OK"] == ["Unavailable: queue: overdue"]
    assert "secret" not in response.text


def test_a_dead_worker_is_an_error(client, jobqueue, tmp_path):
    jobqueue(HEALTH_FILE=str(tmp_path / "worker"))

    response = client.get("/ht/?format=json")

    assert response.status_code == 500
    assert "Unavailable: live: no-worker" in response.json().values()
