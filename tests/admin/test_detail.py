"""One job's page: what it shows, to whom, and that nothing on it can be edited."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission, User

from django_jobqueue.admin.carried import VALUE_LENGTH, WHOLE, json_text, traceback_text
from django_jobqueue.admin.elapsed import elapsed
from django_jobqueue.admin.subjects import SubjectLinks
from django_jobqueue.admin.timeline import MOST_ATTEMPTS
from django_jobqueue.carried import MOST_LEVELS, carried_as
from django_jobqueue.masking import texts
from django_jobqueue.models import Job, JobAttempt, QueueControl
from django_jobqueue.states import SettleOutcome
from tests.admin.pages import address, store_deep_payload
from tests.factories import JobAttemptFactory, JobFactory, QueueControlFactory
from tests.managers.rows import expired, now

pytestmark = pytest.mark.django_db

SECRET = "swordfish"
TRACE_ID = "0af7651916cd43dd8448eb211c80319c"


@pytest.fixture
def told():
    """A job that carries a word in every place that only some may see."""
    job = JobFactory(
        failed=True,
        payload={"note": SECRET},
        result={"note": SECRET},
        last_error=f"ValueError: {SECRET}",
    )
    JobAttemptFactory(job=job, message=SECRET, traceback=f"Traceback\n{SECRET}")
    return job


def laid_out(value):
    text = json.dumps(value)
    return json_text(carried_as(text, len(text), whole=WHOLE))


def show(client, job):
    response = client.get(address("job_change", getattr(job, "pk", job)))
    assert response.status_code == 200
    return response.text


class TestWhatAJobCarries:
    def test_is_shown_to_those_who_may_see_it(self, person, told):
        assert show(person("view_job_payload"), told).count(SECRET) == 5

    @pytest.mark.parametrize("view", ["change", "history", "action"])
    def test_is_nowhere_for_others(self, person, told, view):
        client = person("retry_job", "cancel_job", "delete_job", "reset_stuck_jobs", "pause_queue")
        if view == "action":
            response = client.post(address("job_action", told.pk, "retry"))
        else:
            response = client.get(address(f"job_{view}", told.pk))

        assert response.status_code == 200
        assert SECRET not in response.text
        assert SECRET not in str(response.headers)

    def test_is_not_even_read_for_others(self, person, told, django_assert_max_num_queries):
        client = person()
        with django_assert_max_num_queries(20) as queries:
            show(client, told)

        asked = " ".join(query["sql"] for query in queries if "django_jobqueue_job" in query["sql"])
        for column in ("payload", "result", "message", "traceback"):
            assert f'"{column}"' not in asked

    def test_shows_others_the_class_of_the_error_alone(self, person, told):
        text = show(person(), told)

        assert "ValueError" in text
        assert "builtins.ValueError" in text

    def test_without_a_class_tells_others_nothing(self, person):
        job = JobFactory(failed=True, last_error=f"the word is {SECRET}")

        assert SECRET not in show(person(), job)

    def test_has_its_secrets_masked_even_for_those_who_may_see_it(self, person):
        secrets = {"password": SECRET, "nested": [{"api_token": SECRET}]}
        job = JobFactory(
            succeeded=True,
            payload=secrets,
            result=secrets,
            last_error=f"ValueError: password={SECRET}",
        )
        JobAttemptFactory(job=job, message=f"password={SECRET}", traceback=f"token={SECRET}")

        text = show(person("view_job_payload"), job)

        assert SECRET not in text
        assert text.count("********") >= 6

    def test_is_written_as_indented_json(self):
        assert laid_out({"a": ["ü"]}).text == '{\n  "a": [\n    "ü"\n  ]\n}'

    def test_is_escaped(self, person):
        job = JobFactory(payload={"a": "<script>alert(1)</script>"})

        text = show(person("view_job_payload"), job)

        assert "<script>alert" not in text
        assert "&lt;script&gt;alert" in text

    def test_is_cut_when_it_is_long_and_says_so(self, person):
        job = JobFactory(payload={"a": "x" * 100_000})

        text = show(person("view_job_payload"), job)

        assert len(text) < VALUE_LENGTH + 20_000
        assert "the beginning of 100,00" in text

    def test_that_is_long_is_searched_for_secrets_no_further_than_it_is_shown(
        self, person, monkeypatch
    ):
        lengths = []
        masked_text = texts.masked_text

        def measured(text):
            lengths.append(len(text))
            return masked_text(text)

        monkeypatch.setattr(texts, "masked_text", measured)
        job = JobFactory(
            failed=True,
            payload={"password": SECRET, "a": "api key: " * 50_000},
            result={"a": "https://me:swordfish@host " * 50_000},
        )
        JobAttemptFactory(job=job, message="api key: " * 50_000)

        text = show(person("view_job_payload"), job)

        assert SECRET not in text
        assert len(lengths) == 3 + 1  # Payload, result, message, and the short last error.
        assert max(lengths) <= VALUE_LENGTH

    def test_that_is_nested_very_deep_is_shown_as_text(self, person):
        job = JobFactory(payload={})
        store_deep_payload("job", job.pk)

        text = show(person("view_job_payload", "delete_job"), job)

        assert "Too long or nested too deep to be laid out" in text
        assert text.count("[") > 500

    def test_that_is_nested_very_deep_does_not_break_the_history(self, person):
        job = JobFactory(payload={})
        store_deep_payload("job", job.pk)

        response = person().get(address("job_history", job.pk))

        assert response.status_code == 200

    @pytest.mark.parametrize("levels", [100, 101, 102, 5_000])
    def test_is_json_up_to_a_hundred_levels(self, levels):
        text = "[" * levels + "]" * levels

        assert carried_as(text, len(text), whole=WHOLE).is_text is (levels > MOST_LEVELS + 1)

    def test_with_a_number_that_python_refuses_is_text(self):
        assert carried_as("1" * 5_000, 5_000, whole=WHOLE).is_text

    def test_is_laid_out_and_cut_when_that_is_long(self, person):
        job = JobFactory(payload={"a": ["b"] * (WHOLE // 10)})

        text = show(person("view_job_payload"), job)

        assert "The first 20,000 of " in text

    def test_keeps_the_end_of_a_long_traceback(self):
        shown = traceback_text("start\n" + "x" * 50_000 + "\nValueError: the end")

        assert shown.text.endswith("ValueError: the end")
        assert "start" not in shown.text
        assert shown.note

    def test_without_a_result_shows_none(self, person):
        assert "<h2>Result</h2>" not in show(person("view_job_payload"), JobFactory())


class TestItsFacts:
    def test_are_all_there(self, person):
        job = JobFactory(
            running=True,
            queue="mail",
            reason="asked by hand",
            dedup_key="once",
            org_id="org-1",
            trace_context=f"00-{TRACE_ID}-b7ad6b7169203331-01",
        )

        text = show(person(), job)

        for fact in (job.type, "mail", "asked by hand", "once", "org-1", TRACE_ID, "host:1:0"):
            assert fact in text, fact
        for whole_id in (job.pk, job.claim_token):
            assert str(whole_id) in text
        assert "1 / 3" in text

    def test_hold_in_every_state(self, person):
        client = person("view_job_payload")
        for state in ("scheduled", "due", "running", "succeeded", "failed", "cancelled"):
            show(client, JobFactory(**{state: True}))
        assert "stuck" in show(client, expired())

    def test_of_a_job_without_attempts_are_no_claim(self, person):
        assert "Lease" not in show(person(), JobFactory())

    def test_with_odd_characters_are_escaped(self, person):
        job = JobFactory(type="<b>x</b>", queue="a&b", subject_type="<i>", subject_id='"')

        text = show(person("pause_queue"), job)

        assert "<b>x</b>" not in text
        assert "<i>" not in text

    def test_need_few_queries(self, person, django_assert_max_num_queries):
        client = person("view_job_payload", "retry_job", "delete_job", "cancel_job", "pause_queue")
        job = JobFactory(failed=True)
        JobAttemptFactory.create_batch(30, job=job)
        with django_assert_max_num_queries(16):
            show(client, job)


class TestTheTimeline:
    def test_has_the_attempts_in_their_order_and_the_next_one(self, person):
        due = now() + timedelta(minutes=2, seconds=5, milliseconds=500)
        job = JobFactory(attempts=2, scheduled_for=due)
        for number in (1, 2):
            started = now() - timedelta(minutes=10 - number)
            JobAttemptFactory(
                job=job,
                number=number,
                outcome=SettleOutcome.RETRY_SCHEDULED,
                started_at=started,
                finished_at=started + timedelta(seconds=65),
            )

        text = show(person(), job)

        first, second, coming = (text.index(part) for part in ("#1 ", "#2 ", "retry due in 2 min"))
        assert first < second < coming
        assert text.count("1 min 5 s") == 2

    def test_ends_with_the_run_of_now(self, person):
        job = JobFactory(running=True, attempts=3)
        JobAttemptFactory(job=job, number=2)

        text = show(person(), job)

        assert text.index("#2 ") < text.index("#3 running")

    def test_ends_with_the_success(self, person):
        job = JobFactory(succeeded=True, attempts=1)

        assert "#1 succeeded" in show(person(), job)

    def test_of_thousands_of_attempts_shows_the_last(self, person, django_assert_max_num_queries):
        job = JobFactory(failed=True)
        JobAttempt.objects.bulk_create(
            JobAttemptFactory.build(job=job, number=number, message=f"message-{number}-")
            for number in range(1, 3001)
        )

        text = show(person("view_job_payload"), job)

        assert text.count('class="jobqueue-entry"') == MOST_ATTEMPTS
        assert "message-3000-" in text
        assert "message-2901-" in text
        assert "message-2900-" not in text
        assert "Only the last 100 attempts are shown." in text

    def test_with_very_long_tracebacks_leaves_out_the_older_ones(self, person, monkeypatch):
        monkeypatch.setattr("django_jobqueue.admin.timeline.MOST_TEXT", 70)
        job = JobFactory(failed=True)
        for number in (1, 2, 3):
            JobAttemptFactory(job=job, number=number, traceback=f"traceback-{number} of 22 chars")

        text = show(person("view_job_payload"), job)

        assert "traceback-1" not in text
        assert "traceback-2" in text
        assert "traceback-3" in text
        assert text.count("Left out: those of newer attempts fill the page.") == 1

    def test_of_few_attempts_leaves_none_out(self, person, told):
        assert "Only the last" not in show(person(), told)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "0 ms"),
        (0.0204, "20 ms"),
        (1, "1 s"),
        (1.59, "1.5 s"),
        (59.99, "59.9 s"),
        (125, "2 min 5 s"),
        (3_599.9, "59 min 59 s"),
        (3_660, "1 h 1 min"),
        (90_000, "1 d 1 h"),
    ],
)
def test_a_length_of_time_is_told_in_two_units(seconds, text):
    assert elapsed(timedelta(seconds=seconds)) == text


class TestTheSubject:
    @pytest.fixture
    def link(self, rf, admin_user):
        request = rf.get("/")
        request.user = admin_user
        return SubjectLinks(admin.site, request).url

    @pytest.mark.parametrize("subject_type", ["auth.user", "user", "User", "auth.User"])
    def test_leads_to_its_page(self, link, subject_type):
        assert link(subject_type, "7") == "/admin/auth/user/7/change/"

    @pytest.mark.parametrize(
        ("subject_type", "subject_id"),
        [
            ("report", "7"),
            ("auth.permission", "7"),
            ("auth.user", "seven"),
            ("auth.user", ""),
            ("auth.user", "9" * 5000),
            ("auth.user", "9" * 30),
            ("auth.user", "../../"),
            ("", "7"),
            (None, None),
        ],
    )
    def test_that_has_no_page_leads_nowhere(self, link, subject_type, subject_id):
        assert link(subject_type, subject_id) is None

    def test_asks_the_database_nothing(self, link, django_assert_num_queries):
        link("auth.user", "7")
        with django_assert_num_queries(0):
            for number in range(50):
                link("auth.user", str(number))

    def test_is_a_link_only_for_those_who_may_see_it(self, person):
        job = JobFactory(subject_type="auth.user", subject_id="7")
        client = person()
        url = "/admin/auth/user/7/change/"

        assert url not in show(client, job)
        client.user.user_permissions.add(Permission.objects.get(codename="view_user"))
        client.force_login(User.objects.get(pk=client.user.pk))
        assert url in show(client, job)


class TestItsPauses:
    def test_are_told_and_offered_to_those_who_may_pause(self, person):
        job = JobFactory(queue="mail")
        QueueControlFactory(kind="queue", name="mail", reason="the server is down")
        client, viewer = person("pause_queue"), person()

        text, plain = show(client, job), show(viewer, job)

        assert "paused: the server is down" in plain
        assert "paused: the server is down" in text
        assert address("queuecontrol_changelist") in text
        add = address("queuecontrol_add")
        assert f"{add}?kind=type&amp;name=test.echo" in text
        assert f"{add}?" not in plain
        assert f"{add}?kind=queue" not in text
        assert QueueControl.objects.count() == 1


class TestAddresses:
    @pytest.mark.parametrize(
        ("method", "view", "status"),
        [
            ("post", "change", 403),
            ("get", "delete", 403),
            ("post", "delete", 403),
        ],
    )
    def test_of_django_s_forms_change_nothing(self, admin_client, told, method, view, status):
        before = Job.objects.values().get()
        url = address(f"job_{view}", told.pk)

        response = getattr(admin_client, method)(url, {"status": "succeeded", "post": "yes"})

        assert response.status_code == status
        assert SECRET not in response.text
        assert Job.objects.values().get() == before

    @pytest.mark.parametrize("method", ["get", "post"])
    def test_of_a_new_job_is_refused(self, admin_client, method):
        url = address("job_add")

        assert getattr(admin_client, method)(url, {"type": "x"}).status_code == 403
        assert not Job.objects.exists()

    @pytest.mark.parametrize("view", ["change", "history", "delete"])
    def test_are_closed_to_those_who_may_not_view(self, person, client, told, view):
        url = address(f"job_{view}", told.pk)

        assert person("retry_job", "view_job_payload", view=False).get(url).status_code == 403
        assert "/login/" in client.get(url).url

    @pytest.mark.parametrize("job_id", ["7", "no-id", "00000000-0000-0000-0000-000000000000"])
    def test_of_no_job_lead_to_the_list(self, admin_client, job_id):
        response = admin_client.get(address("job_change", job_id))

        assert (response.status_code, response.url) == (302, address("job_changelist"))

    def test_have_nothing_inline_that_a_strict_policy_forbids(self, admin_client, told):
        text = show(admin_client, told)

        own = text[text.index('id="content-main"') :]
        assert "style=" not in own
        assert "<script" not in own
        assert " on" + "click" not in own

    def test_have_no_field_of_a_job_to_edit(self, admin_client, told):
        text = show(admin_client, told)
        own = text[text.index('id="content-main"') :]

        assert "<textarea" not in own
        assert 'type="text"' not in own


def test_the_payload_is_whole_json_when_it_is_short():
    value = {"a": [1, 2.5, None, True], "b": {"c": "d"}}

    assert json.loads(laid_out(value).text) == value


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "America/Los_Angeles"])
@pytest.mark.parametrize("year", [1, 9999])
def test_moments_at_the_ends_of_time_are_shown_in_every_time_zone(person, settings, year, zone):
    settings.TIME_ZONE = zone
    at = datetime(year, *((1, 1) if year == 1 else (12, 31, 23, 59)), tzinfo=UTC)
    moments = ("created_at", "ready_at", "started_at", "finished_at")
    job = JobFactory(failed=True, **dict.fromkeys(moments, at))
    JobAttemptFactory(job=job, started_at=at, finished_at=at)
    JobFactory(scheduled_for=at)
    client = person("view_job_payload")

    assert f"{year:04}-" in show(client, job)
    assert client.get(address("job_changelist")).status_code == 200
