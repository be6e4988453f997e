"""`{% load jobqueue %}`: what a site's own users read."""

from datetime import timedelta

import pytest
from django.template import Context, Template
from django.utils import translation

from tests.factories import JobFactory, QueueControlFactory
from tests.insights.rows import history, now, worker

pytestmark = pytest.mark.django_db


def said(template, **context):
    return Template("{% load jobqueue %}" + template).render(Context(context))


def eta(job):
    by_tag = said("{% job_eta job %}", job=job)
    assert said("{{ job|job_eta }}", job=job) == by_tag
    return by_tag


def test_a_waiting_job_says_about_when_it_will_be_done():
    history(30, seconds=120, type="a")
    worker("a", slots=1)
    JobFactory(type="a")
    job = JobFactory(type="a")

    assert eta(job) == "about 4 minutes"
    assert said("{% job_position job %}", job=job) == "1 job before it"


def test_without_history_it_says_so():
    worker("a")

    assert eta(JobFactory(type="a")) == "not enough history yet"
    assert eta(JobFactory(type="a", running=True)) == "running, not enough history yet"


def test_a_running_job_says_what_is_left():
    history(30, seconds=120, type="a")

    assert eta(JobFactory(type="a", running=True)) == "running, about 2 minutes left"


def test_a_scheduled_job_says_when_it_starts():
    history(30, type="a")
    job = JobFactory(type="a", scheduled_for=now() + timedelta(hours=2))

    assert eta(job) == "starts in about 2 hours"
    assert said("{% job_position job %}", job=job) == ""


@pytest.mark.parametrize(
    ("state", "words"), [("succeeded", "done"), ("failed", "failed"), ("cancelled", "cancelled")]
)
def test_a_job_that_ended_says_how(state, words):
    assert eta(JobFactory(**{state: True})) == words


def test_a_paused_job_says_so():
    QueueControlFactory(kind="queue", name="held")

    assert eta(JobFactory(queue="held")) == "paused"


def test_a_job_far_behind_says_more_than(monkeypatch):
    from django_jobqueue.insights import forecast

    monkeypatch.setattr(forecast, "MOST_AHEAD", 2)
    history(30, seconds=60, type="a")
    worker("a", slots=1)
    job = [JobFactory(type="a") for _ in range(4)][-1]

    assert eta(job) == "more than 3 minutes"
    assert said("{% job_position job %}", job=job) == "more than 2 jobs before it"


def test_the_first_in_line_is_next():
    assert said("{% job_position job %}", job=JobFactory()) == "next"


def test_nothing_is_said_of_no_job():
    assert said("{% job_eta job %}{% job_position job %}{{ job|job_eta }}", job=None) == ""


def test_a_list_of_jobs_costs_one_look_and_a_statement_a_job(django_assert_max_num_queries):
    history(30, type="a")
    worker("a")
    jobs = [JobFactory(type="a") for _ in range(10)]

    with django_assert_max_num_queries(6 + 10):
        said("{% for job in jobs %}{% job_eta job %}{% endfor %}", jobs=jobs)


@pytest.mark.parametrize(
    ("language", "eta_words", "position_words"),
    [
        ("de", "etwa 4 Minuten", "1 Auftrag davor"),
        ("es", "aproximadamente 4 minutos", "1 trabajo por delante"),
    ],
)
def test_it_speaks_the_language_of_the_page(language, eta_words, position_words):
    history(30, seconds=120, type="a")
    worker("a", slots=1)
    JobFactory(type="a")
    job = JobFactory(type="a")

    with translation.override(language):
        assert eta(job) == eta_words
        assert said("{% job_position job %}", job=job) == position_words


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("de", ["fertig", "fehlgeschlagen", "abgebrochen", "noch nicht genügend Verlauf"]),
        ("es", ["terminado", "fallido", "cancelado", "todavía sin historial suficiente"]),
    ],
)
def test_what_became_of_a_job_is_translated(language, words):
    states = ("succeeded", "failed", "cancelled")
    jobs = [JobFactory(type="a", **{state: True}) for state in states]
    jobs.append(JobFactory(type="b"))

    with translation.override(language):
        assert [eta(job) for job in jobs] == words
