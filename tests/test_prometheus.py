import urllib.request
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connections
from prometheus_client import CollectorRegistry, generate_latest, start_http_server
from prometheus_client.parser import text_string_to_metric_families

from django_jobqueue import prometheus
from django_jobqueue.database.clock import database_now
from django_jobqueue.models import Job, QueueControl
from django_jobqueue.prometheus import FAMILIES, JobQueueCollector
from tests.factories import WorkerProcessFactory


def scraped(text):
    return {
        (sample.name, *(sample.labels[label] for label in FAMILIES[sample.name][1])): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.fixture
def scrape():
    registry = CollectorRegistry()
    registry.register(JobQueueCollector())
    return lambda: scraped(generate_latest(registry).decode())


def test_registering_reads_no_database():
    CollectorRegistry().register(JobQueueCollector())


def test_an_empty_queue_is_up_and_has_no_workers(db, scrape):
    assert scrape() == {
        ("jobqueue_up",): 1,
        ("jobqueue_stuck_jobs",): 0,
        ("jobqueue_workers",): 0,
        ("jobqueue_worker_slots",): 0,
        ("jobqueue_worker_slots_busy",): 0,
    }


def test_jobs_are_counted_by_type_queue_and_state(db, scrape):
    now = database_now(connections["default"])
    for _ in range(3):
        Job.objects.enqueue("a", org_id="acme")
    Job.objects.enqueue("a", queue="slow", delay=600)
    Job.objects.enqueue("b")
    Job.objects.filter(type="b").update(ready_at=now - timedelta(minutes=10))
    claimed, *_ = Job.objects.claim([uuid4()], {"b": timedelta(minutes=1)})
    Job.objects.enqueue("c")
    Job.objects.filter(type="c").update(ready_at=now - timedelta(minutes=10))

    found = scrape()

    jobs = {key[1:]: value for key, value in found.items() if key[0] == "jobqueue_jobs"}
    assert jobs == {
        ("a", "default", "ready"): 3,
        ("a", "slow", "scheduled"): 1,
        ("b", "default", "running"): 1,
        ("c", "default", "ready"): 1,
    }
    age = "jobqueue_oldest_due_age_seconds"
    assert 600 <= found[age, "c", "default"] < 660
    assert 0 <= found[age, "a", "default"] < 60
    assert (age, "a", "slow") not in found
    assert (age, "b", "default") not in found
    assert claimed.type == "b"


def test_the_end_of_jobs_shows_for_five_minutes(db, scrape):
    now = database_now(connections["default"])
    cancelled = Job.objects.enqueue("a")
    Job.objects.cancel(cancelled)
    old = Job.objects.enqueue("old")
    Job.objects.cancel(old)
    Job.objects.filter(pk=old.pk).update(finished_at=now - timedelta(minutes=6))

    found = scrape()

    recent = {key for key in found if key[0] == "jobqueue_recently_finished_jobs"}
    assert recent == {("jobqueue_recently_finished_jobs", "a", "cancelled")}


def test_stuck_jobs_pauses_and_live_workers_show(db, scrape):
    now = database_now(connections["default"])
    Job.objects.enqueue("a")
    Job.objects.claim([uuid4()], {"a": timedelta(minutes=1)})
    Job.objects.update(lease_expires_at=now - timedelta(seconds=1))
    QueueControl.objects.create(kind="queue", name="slow", paused_at=now)
    for seen in (now, now - timedelta(minutes=2)):
        WorkerProcessFactory(busy=3, started_at=now, seen_at=seen)

    found = scrape()

    assert found["jobqueue_stuck_jobs",] == 1
    assert found["jobqueue_paused", "queue", "slow"] == 1
    assert found["jobqueue_workers",] == 1
    assert found["jobqueue_worker_slots",] == 4
    assert found["jobqueue_worker_slots_busy",] == 3


def test_labels_stay_few_however_many_types_there_are(db, scrape, monkeypatch):
    monkeypatch.setattr(prometheus, "MOST_PLACES", 2)
    for number in range(5):
        Job.objects.enqueue(f"type.{number}")
    for _ in range(2):
        Job.objects.enqueue("often")

    found = scrape()

    jobs = {key[1]: value for key, value in found.items() if key[0] == "jobqueue_jobs"}
    assert len(jobs) == 3
    assert jobs["often"] == 2
    assert jobs["other"] == 4
    assert len([key for key in found if "oldest" in key[0]]) == 2


def test_a_scrape_is_a_few_statements_and_only_reads(db, scrape, django_assert_max_num_queries):
    Job.objects.enqueue("a")

    with django_assert_max_num_queries(8) as asked:
        scrape()

    assert all(query["sql"].lstrip().upper().startswith("SELECT") for query in asked)


@pytest.fixture
def database_away(db):
    """Nobody listens where the site's database should be, for one test."""
    here = connections["default"]
    away = {**here.settings_dict, "HOST": "127.0.0.1", "PORT": "1", "PASSWORD": "hunter2"}
    if here.vendor == "sqlite":
        away["NAME"] = "/nowhere/at/all.sqlite3"
    connections["default"] = type(here)(away, "default")
    yield
    connections["default"] = here


def test_a_database_away_is_a_scrape_that_says_so(database_away, scrape, caplog):
    assert scrape() == {("jobqueue_up",): 0}
    assert [r.msg for r in caplog.records] == [
        "The jobs table could not be read for Prometheus: %s"
    ]
    assert "hunter2" not in caplog.text


def test_a_real_scrape_over_http_leaves_no_connection_behind(transactional_db):
    Job.objects.enqueue("a")
    registry = CollectorRegistry()
    registry.register(JobQueueCollector())
    server, thread = start_http_server(0, "127.0.0.1", registry)
    try:
        url = f"http://127.0.0.1:{server.server_port}/metrics"
        with urllib.request.urlopen(url) as answer:
            found = scraped(answer.read().decode())
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

    assert found["jobqueue_up",] == 1
    assert found["jobqueue_jobs", "a", "default", "ready"] == 1


@pytest.mark.parametrize("collector", [JobQueueCollector(), JobQueueCollector("nowhere")])
def test_what_the_site_set_wrongly_is_a_scrape_that_says_so(db, jobqueue, caplog, collector):
    jobqueue(STUCK_THRESHOLD="long")
    registry = CollectorRegistry()
    registry.register(collector)

    assert scraped(generate_latest(registry).decode()) == {("jobqueue_up",): 0}
    (record,) = caplog.records
    assert record.msg == "The jobs table could not be read for Prometheus: %s"
    assert record.levelname == "WARNING"
    assert "STUCK_THRESHOLD" in caplog.text or "nowhere" in caplog.text


def test_a_router_that_raises_is_a_scrape_that_says_so(db, scrape, settings, caplog):
    class Broken:
        def db_for_read(self, model, **hints):
            raise KeyError("tenant")

    settings.DATABASE_ROUTERS = [Broken()]

    assert scrape() == {("jobqueue_up",): 0}
    assert "KeyError: 'tenant'" in caplog.text
