"""The probes over HTTP."""

import json
from datetime import timedelta

import pytest
from django.db import connection
from django.test import override_settings

from django_jobqueue import healthfile
from tests import databases
from tests.aliases import alias
from tests.checks.looking import jobs_on
from tests.factories import JobFactory
from tests.health.test_ready import away
from tests.managers.rows import now
from tests.processes import Site

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.urls("tests.health.addresses"),
]


def test_a_ready_database_is_200(client):
    response = client.get("/health/ready/")

    assert response.status_code == 200
    assert response["Content-Type"] == "application/json"
    assert response["Cache-Control"] == "no-store"
    assert response.json() == {"probe": "ready", "healthy": True, "problems": [], "measures": {}}


def test_an_ill_queue_is_503_with_codes_and_numbers_only(client):
    moment = now() - timedelta(seconds=5000)
    JobFactory(type="secret.name", queue="private", created_at=moment, ready_at=moment)

    response = client.get("/health/queue/")

    assert response.status_code == 503
    said = response.json()
    assert said["problems"] == ["overdue"]
    assert said["measures"]["overdue_seconds"] >= 5000
    assert "secret" not in response.text
    assert "private" not in response.text
    assert all(
        value is None or isinstance(value, int | float) for value in said["measures"].values()
    )


def test_live_tells_the_age_of_the_file_and_not_where_it_lies(client, jobqueue, tmp_path):
    file = str(tmp_path / "worker")
    jobqueue(HEALTH_FILE=file)
    missing = client.get("/health/live/")
    healthfile.write(file)
    fresh = client.get("/health/live/")

    assert (missing.status_code, missing.json()["problems"]) == (503, ["no-worker"])
    assert (fresh.status_code, fresh.json()["healthy"]) == (200, True)
    assert str(tmp_path) not in missing.text + fresh.text


def test_live_without_a_file_is_503(client):
    assert client.get("/health/live/").json()["problems"] == ["no-health-file"]


@pytest.mark.parametrize("name", ["ready", "queue"])
def test_a_database_that_is_away_is_503_and_names_no_address(client, tmp_path, name):
    with alias("away", **away(tmp_path)), jobs_on("away"):
        response = client.get(f"/health/{name}/")

    assert response.status_code == 503
    assert response.json() == {
        "probe": name,
        "healthy": False,
        "problems": ["database-away"],
        "measures": {},
    }


def test_a_setting_that_cannot_be_used_is_503(client):
    with override_settings(JOBQUEUE={"HEALTH_MAX_AGE": "soon"}):
        response = client.get("/health/ready/")

    assert (response.status_code, response.json()["problems"]) == (503, ["settings"])


def test_a_threshold_that_cannot_be_used_is_no_database_away(client):
    with override_settings(JOBQUEUE={"STUCK_THRESHOLD": "soon"}):
        response = client.get("/health/queue/")

    assert (response.status_code, response.json()["problems"]) == (503, ["settings"])


@pytest.mark.parametrize("method", ["post", "put", "delete", "patch"])
def test_it_only_tells(client, method):
    assert getattr(client, method)("/health/ready/").status_code == 405


def test_head_has_the_status_and_no_body(client):
    response = client.head("/health/ready/")

    assert (response.status_code, response.content) == (200, b"")


@pytest.mark.parametrize("name", ["live", "ready", "queue"])
def test_a_request_needs_no_session_and_asks_the_database_for_nothing_else(
    client, name, django_assert_num_queries
):
    with django_assert_num_queries(0):  # The probe's own connection is another.
        response = client.get(f"/health/{name}/")

    assert response.cookies == {}


ASK = """
import django; django.setup()
from django.test import Client
response = Client().get("/health/ready/")
print(response.status_code, response.content.decode())
"""


def test_with_atomic_requests_a_database_that_is_away_is_503_too(tmp_path):
    """Django begins such a request with a transaction."""
    if connection.vendor == databases.SQLITE:
        url = f"sqlite:///{tmp_path / 'no' / 'folder' / 'site.sqlite3'}"
    else:
        url = "postgresql://ann:secret@127.0.0.1:1/site"
    (tmp_path / "ask.py").write_text(ASK)
    site = Site(
        tmp_path,
        'DATABASES["default"]["ATOMIC_REQUESTS"] = True',
        'ROOT_URLCONF = "tests.health.addresses"',
        url=url,
    )

    done = site.manage(program="ask.py")

    assert done.returncode == 0, done.stderr
    status, _, body = done.stdout.partition(" ")
    assert (status, json.loads(body)["problems"]) == ("503", ["database-away"])
