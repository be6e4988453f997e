"""The admin in other languages: none of our English is left, and counts have their forms."""

import re
from datetime import timedelta
from html import unescape

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.urls import reverse
from django.utils import timezone, translation

from django_jobqueue import insights, registry
from django_jobqueue.admin import operations
from django_jobqueue.admin.operations import OPERATIONS, SKIPPED, counted
from django_jobqueue.admin.timeouts import took_too_long
from django_jobqueue.models import JobStatsRollup, Schedule, WorkerProcess
from django_jobqueue.states import SettleOutcome, SkipReason
from tests.admin.pages import address, confirm, messages_of
from tests.factories import (
    JobAttemptFactory,
    JobFactory,
    QueueControlFactory,
    ScheduleFactory,
)
from tests.insights.rows import finished, history, worker
from tests.managers.rows import expired
from tests.translations import LANGUAGES, catalog_of

pytestmark = pytest.mark.django_db

in_each_language = pytest.mark.parametrize("language", LANGUAGES)

LONG = 12
"""From so many characters on, a text on a page is taken for ours and not for a word in data."""

BAD_PAUSE = {"kind": "queue", "name": " " * 101, "reason": ""}
BAD_SCHEDULE = {
    "name": "x", "type": "a", "queue": "default", "priority": "0", "payload": "[]",
    "cron": "every day", "timezone": "Mars/Olympus", "catch_up": "skip", "limit": "0",
}  # fmt: skip


@pytest.fixture
def boss(admin_client):
    return admin_client


@pytest.fixture
def busy():
    """A queue with something of everything. Return the jobs whose pages are looked at."""
    jobs = [
        JobFactory(scheduled=True, attempts=1),
        JobFactory(scheduled=True),
        JobFactory(due=True, rate_limited_at=timezone.now(), rate_limit_hits=2),
        JobFactory(type="unknown", queue="held"),
        JobFactory(running=True, subject_type="report", subject_id="7", reason="by hand"),
        expired(),
        JobFactory(succeeded=True, payload={"a": "x" * 30_000}, dedup_key="once", org_id="o"),
        JobFactory(cancelled=True),
        JobFactory(failed=True, last_error="two words: nothing"),
    ]
    failed = JobFactory(failed=True, trace_context=f"00-{'a' * 32}-{'b' * 16}-01")
    for number, outcome in enumerate(SettleOutcome, 1):
        JobAttemptFactory(job=failed, number=number, outcome=outcome, traceback="x" * number)
    JobAttemptFactory(job=failed, number=99, traceback="x " * 5_000)
    QueueControlFactory(kind="queue", name="held", reason="moving house")
    QueueControlFactory(kind="type", name="test.fail")
    history(30, seconds=90, type="a")
    finished(1, failed=True, last_error="")
    finished(4000, type="b")
    worker("a", queues=["default"])
    worker("a", mode="system", pid=2, seen_ago=timedelta(hours=1))
    JobFactory(type="a")
    JobFactory(type="b")
    ScheduleFactory(name="nightly")
    sums = {"succeeded_count": 1200, "duration_sum": 90, "duration_samples": 2}
    JobStatsRollup.objects.create(type="a", **sums)
    return [*jobs, failed]


def chosen(action, jobs, **data):
    ids = [str(job.pk) for job in jobs]
    return {"action": f"{action}_jobs", "index": "0", "_selected_action": ids} | data


def pages(client, jobs):
    """Yield the name and the text of each page."""

    def get(name, /, *args, **query):
        response = client.get(address(name, *args), query)
        assert response.status_code in {200, 400}, (name, response.status_code)
        return f"{name} {args} {query}", response.text

    def post(name, /, *args, **data):
        response = client.post(address(name, *args), data)
        assert response.status_code == 200, (name, response.status_code)
        return f"{name} {args} posted", response.text

    yield "index", client.get(reverse("admin:index")).text
    yield get("job_changelist")
    yield get("job_changelist", status="failed", activity="week")
    for job in jobs:
        yield get("job_change", job.pk)
    yield get("job_history", jobs[0].pk)
    for operation in OPERATIONS:
        yield post("job_changelist", **chosen(operation.name, jobs))
        job = next(job for job in jobs if operation.eligible(type(job).objects.filter(pk=job.pk)))
        yield post("job_action", job.pk, operation.name)
    yield get("insights")
    yield get("insights", window="1h")
    yield get("insights", window="7y")
    yield get("queuecontrol_changelist")
    yield get("queuecontrol_add")
    for kind in ("queue", "type"):
        yield post("queuecontrol_add", kind=kind, name="mail", reason="")
    yield post("queuecontrol_add", **BAD_PAUSE)
    for pause in QueueControlFactory._meta.model.objects.all():
        yield post("queuecontrol_resume", pause.pk)
    yield get("workerprocess_changelist")
    yield get("workerprocess_change", WorkerProcess.objects.first().pk)
    yield get("jobstatsrollup_changelist")
    yield get("schedule_changelist")
    yield get("schedule_add")
    yield post("schedule_add", **BAD_SCHEDULE)
    yield get("schedule_change", Schedule.objects.get().pk)


def texts_of(catalog):
    """Yield the texts of ours that are long enough, without what stands for a value in them."""
    for message in catalog:
        ids = message.id if message.pluralizable else [message.id]
        strings = message.string if message.pluralizable else [message.string]
        for part in re.split(r"%\(\w+\)[sd]", "%(and)s".join(ids)):
            said = part.strip().casefold()
            # Some words are the same in both languages, or part of a longer one.
            if len(said) > LONG and not any(said in string.casefold() for string in strings):
                yield said


def words(html):
    """Return what a page says, in small letters: its text and what is read of its attributes."""
    html = re.sub(r"<(script|style)\b.*?</\1>", "", html, flags=re.DOTALL)
    attributes = re.findall(r'\b(?:title|aria-label|placeholder|alt|value)="([^"]*)"', html)
    text = re.sub(r"<[^>]*>", "\n", html)
    return re.sub(r"\s+", " ", unescape("\n".join([text, *attributes]))).casefold()


@in_each_language
def test_no_english_of_ours_is_left_on_any_page(boss, busy, language):
    ours = set(texts_of(catalog_of(language)))
    with translation.override("en"):
        english = {name: words(page) for name, page in pages(boss, busy)}
    with translation.override(language):
        translated = {name: words(page) for name, page in pages(boss, busy)}

    met = set()
    for name, page in english.items():
        on_page = {text for text in ours if text in page}
        assert {text for text in on_page if text in translated[name]} == set(), name
        met |= on_page
    # The pages of an empty queue have texts of their own: see below.
    assert len(met) > 100


@in_each_language
def test_nor_on_those_of_an_empty_queue(boss, language):
    ours = set(texts_of(catalog_of(language)))
    names = ("job_changelist", "insights", "queuecontrol_changelist", "workerprocess_changelist")

    def all_words():
        return words(" ".join(boss.get(address(name)).text for name in names))

    with translation.override("en"):
        english = all_words()
    with translation.override(language):
        said = all_words()

    on_pages = {text for text in ours if text in english}
    assert "there has been no job yet." in on_pages
    assert {text for text in on_pages if text in said} == set()


def test_nor_where_the_database_has_no_more_time(boss, rf, admin_user):
    request = rf.get("/", {"status": "failed"})
    request.user = admin_user
    with translation.override("de"):
        page = took_too_long(admin.site.get_model_admin(Schedule), request).render().text

    assert "Diese Ansicht dauerte länger" in page
    assert "Ohne Filter anzeigen" in page
    assert "This view" not in page


def test_a_page_in_german_reads_as_its_operators_speak(boss, busy):
    with translation.override("de"):
        said = boss.get(address("insights")).text
        page = boss.get(address("job_change", busy[-1].pk)).text

    assert "Die Warteschlange braucht Aufmerksamkeit" in said
    assert "1 laufender Auftrag hängt: Kein Worker bearbeitet ihn mehr." in said
    assert "1 Auftrag wartet wegen einer Pause." in said
    assert "1 Worker ist aktiv." in said
    assert "Auftrag vom Typ test.echo" in page
    assert "als verwaist beendet" in page
    assert re.search(r"\b\d\d\.\d\d\.\d{4} \d\d:\d\d:\d\d UTC\b", page)


def test_what_was_done_is_told_in_the_language_of_the_page(boss):
    jobs = [JobFactory(failed=True), JobFactory(failed=True), JobFactory()]
    with translation.override("es"):
        asked = boss.post(address("job_changelist"), chosen("retry", jobs))
        done = confirm(boss, asked)

        assert "¿Reintentar 2 trabajos fallidos o cancelados?" in asked.text
        assert messages_of(done) == [
            "2 trabajos esperan a ejecutarse de nuevo.",
            "Omitidos: 1 en otro estado.",
        ]


@pytest.mark.parametrize(
    ("language", "one", "two"),
    [
        ("en", "Retry 1 failed or cancelled job?", "Retry 2 failed or cancelled jobs?"),
        (
            "de",
            "1 fehlgeschlagenen oder abgebrochenen Auftrag wiederholen?",
            "2 fehlgeschlagene oder abgebrochene Aufträge wiederholen?",
        ),
        (
            "es",
            "¿Reintentar 1 trabajo fallido o cancelado?",
            "¿Reintentar 2 trabajos fallidos o cancelados?",
        ),
    ],
)
def test_one_and_two_have_their_forms(language, one, two):
    with translation.override(language):
        assert counted(operations.RETRY.question, 1) == one
        assert counted(operations.RETRY.question, 2) == two


@pytest.mark.parametrize(
    ("language", "words_for_many"),
    [("de", "9.999 laufende"), ("en", "9,999 that are running"), ("es", "9\xa0999 en ejecución")],
)
def test_large_counts_are_grouped_as_the_language_does(language, words_for_many, settings):
    for settings.USE_THOUSAND_SEPARATOR in (False, True):
        with translation.override(language):
            assert counted(SKIPPED[SkipReason.RUNNING], 9_999) == words_for_many


@in_each_language
def test_grouped_numbers_stay_out_of_addresses_and_pictures(boss, busy, settings, language):
    settings.USE_THOUSAND_SEPARATOR = True
    pause = QueueControlFactory(id=12_345, kind="queue", name="far")
    with translation.override(language):
        said = boss.get(address("insights")).text
        pauses = boss.get(address("queuecontrol_changelist")).text
        for _name, page in pages(boss, busy):
            assert page

    assert f'action="{address("queuecontrol_resume", pause.pk)}"' in pauses
    pictures = "".join(re.findall(r'<svg class="jobqueue.*?</svg>', said, re.DOTALL))
    numbers = re.findall(r' (?:x|y|x1|x2|y1|y2|width|height)="([^"]*)"', pictures)
    assert len(numbers) > 50
    assert [number for number in numbers if not re.fullmatch(r"-?\d+(\.\d+)?", number)] == []


def test_permissions_and_the_purge_have_names_to_translate():
    from django_jobqueue.handlers.purge import PURGE_TYPE

    with translation.override("de"):
        assert str(registry.get(PURGE_TYPE).label) == "Bereinigung alter Aufträge"
    # What the database keeps is English, whatever language the site was migrated in.
    assert Permission.objects.get(codename="retry_job").name == "Can retry jobs"


@pytest.mark.parametrize(
    ("variant", "label"), [("de-at", "Auftrag löschen"), ("es-mx", "Eliminar trabajo")]
)
def test_a_country_s_variant_speaks_its_language(variant, label):
    with translation.override(variant):
        assert str(operations.DELETE.label) == label


def test_an_estimate_explains_itself_in_german():
    history(30, seconds=120, type="a")
    worker("a", slots=1)
    JobFactory(type="a")

    with translation.override("de"):
        explanation = insights.etas()["a"].explanation

    assert explanation == (
        "Nach der mittleren Dauer von 30 abgeschlossenen Läufen. "
        "1 aktiver Slot führt ihn aus; auch andere Typen können ihn nutzen."
    )
