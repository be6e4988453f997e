"""Pausing and resuming in the admin."""

import pytest
from django.contrib.admin.models import CHANGE, LogEntry

from django_jobqueue.admin import audit
from django_jobqueue.models import Job, QueueControl
from tests.admin.pages import address, confirm, messages_of
from tests.claims import claimed
from tests.factories import JobFactory, QueueControlFactory

pytestmark = pytest.mark.django_db

LIST = "queuecontrol_changelist"
MAIL = {"kind": "queue", "name": "mail", "reason": "the server is down"}


def paused():
    return sorted(QueueControl.objects.values_list("kind", "name"))


class TestPausing:
    @pytest.mark.parametrize("kind", ["queue", "type"])
    def test_is_asked_for_confirmed_and_done(self, person, kind):
        client = person("pause_queue")
        asked = client.post(address("queuecontrol_add"), MAIL | {"kind": kind})
        assert asked.status_code == 200
        assert f"Pause the {kind} mail?" in asked.text
        assert paused() == []

        done = confirm(client, asked)

        assert (done.status_code, done.url) == (302, address(LIST))
        assert paused() == [(kind, "mail")]
        assert QueueControl.objects.get().reason == "the server is down"
        assert messages_of(done) == [f"The {kind} mail is paused."]

    def test_stops_claims(self, person):
        client = person("pause_queue")
        JobFactory(queue="mail")
        confirm(client, client.post(address("queuecontrol_add"), MAIL))

        assert claimed() == []

    def test_twice_keeps_the_first(self, person):
        client = person("pause_queue")
        QueueControlFactory(kind="queue", name="mail", reason="first")

        done = confirm(client, client.post(address("queuecontrol_add"), MAIL))

        assert messages_of(done) == ["The queue mail was paused already."]
        assert QueueControl.objects.get().reason == "first"

    def test_starts_from_what_a_link_names(self, person):
        text = (
            person("pause_queue")
            .get(address("queuecontrol_add"), {"kind": "type", "name": 'a"b'})
            .text
        )

        assert 'value="a&quot;b"' in text
        assert '<option value="type" selected>' in text
        assert paused() == []

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("name", ""),
            ("name", "   "),
            ("name", "x" * 101),
            ("name", "a\0b"),
            ("kind", "job"),
            ("kind", ""),
            ("reason", "x" * 201),
            ("reason", "a\0b"),
        ],
    )
    def test_of_what_cannot_be_is_refused_beside_its_field(self, person, field, value):
        form = MAIL | {field: value, "confirmed": "yes"}

        response = person("pause_queue").post(address("queuecontrol_add"), form)

        assert response.status_code == 200
        assert field in response.context["form"].errors
        assert paused() == []

    def test_of_a_type_takes_longer_names(self, person):
        client, name = person("pause_queue"), "x" * 200

        client.post(address("queuecontrol_add"), {"kind": "type", "name": name, "confirmed": "yes"})

        assert paused() == [("type", name)]


class TestResuming:
    def test_is_asked_for_confirmed_and_done(self, person):
        client, pause = person("pause_queue"), QueueControlFactory(name="mail")
        url = address("queuecontrol_resume", pause.pk)
        assert url in client.get(address(LIST)).text

        asked = client.post(url)
        assert "Resume the queue mail?" in asked.text
        assert paused() == [("queue", "mail")]
        done = confirm(client, asked)

        assert (done.status_code, done.url) == (302, address(LIST))
        assert messages_of(done) == ["The queue mail is no longer paused."]
        assert paused() == []

    def test_twice_harms_nothing(self, person):
        client, pause = person("pause_queue"), QueueControlFactory()
        asked = client.post(address("queuecontrol_resume", pause.pk))
        confirm(client, asked)

        done = confirm(client, asked)

        assert messages_of(done)[-1] == "That pause has ended already."

    def test_cannot_be_asked_for_by_get(self, person):
        pause = QueueControlFactory()

        response = person("pause_queue").get(
            address("queuecontrol_resume", pause.pk), {"confirmed": "yes"}
        )

        assert response.status_code == 405
        assert QueueControl.objects.exists()


class TestWhoMay:
    @pytest.mark.parametrize("who", ["viewer", "operator", "payload viewer"])
    def test_others_only_look(self, person, who):
        codenames = {
            "viewer": [],
            "operator": ["retry_job", "cancel_job", "delete_job", "reset_stuck_jobs"],
            "payload viewer": ["view_job_payload"],
        }[who]
        client, pause = person(*codenames), QueueControlFactory(name="mail")
        resume = address("queuecontrol_resume", pause.pk)

        page = client.get(address(LIST))
        assert page.status_code == 200
        assert "mail" in page.text
        assert resume not in page.text
        assert client.get(address("queuecontrol_add")).status_code == 403
        for data in ({}, {"confirmed": "yes"}):
            assert client.post(resume, data).status_code == 403
            form = {"kind": "queue", "name": "other", **data}
            assert client.post(address("queuecontrol_add"), form).status_code == 403
        assert paused() == [("queue", "mail")]

    def test_those_who_may_pause_may_look(self, person):
        client = person("pause_queue", view=False)
        QueueControlFactory()

        assert client.get(address(LIST)).status_code == 200
        assert client.get(address("job_changelist")).status_code == 403

    def test_nobody_else_may_look(self, person, client):
        assert person("retry_job", view=False).get(address(LIST)).status_code == 403
        assert "/login/" in client.get(address(LIST)).url

    def test_a_stranger_is_sent_to_the_login(self, client):
        pause = QueueControlFactory()
        for url, data in (
            (address("queuecontrol_resume", pause.pk), {"confirmed": "yes"}),
            (address("queuecontrol_add"), MAIL | {"confirmed": "yes"}),
        ):
            assert "/login/" in client.post(url, data).url
        assert paused() == [(pause.kind, pause.name)]

    def test_a_request_without_a_csrf_token_is_refused(self, person):
        client = person("pause_queue", enforce_csrf_checks=True)
        pause = QueueControlFactory()

        assert client.post(address("queuecontrol_add"), MAIL).status_code == 403
        resume = address("queuecontrol_resume", pause.pk)
        assert client.post(resume, {"confirmed": "yes"}).status_code == 403
        assert paused() == [(pause.kind, pause.name)]


class TestThePages:
    def test_of_no_pauses_says_so(self, person):
        assert "Nothing is paused" in person().get(address(LIST)).text

    def test_of_django_s_forms_change_nothing(self, admin_client):
        pause = QueueControlFactory()

        assert admin_client.get(address("queuecontrol_delete", pause.pk)).status_code == 403
        url = address("queuecontrol_delete", pause.pk)
        assert admin_client.post(url, {"post": "yes"}).status_code == 403
        url = address("queuecontrol_change", pause.pk)
        assert admin_client.post(url, {"name": "x"}).status_code == 403
        assert admin_client.get(url).status_code == 200
        assert admin_client.post(address(LIST), {"action": "delete_selected"}).status_code == 403
        assert paused() == [(pause.kind, pause.name)]

    def test_have_nothing_inline_that_a_strict_policy_forbids(self, admin_client):
        pause = QueueControlFactory()
        for response in (
            admin_client.get(address(LIST)),
            admin_client.get(address("queuecontrol_add")),
            admin_client.post(address("queuecontrol_resume", pause.pk)),
        ):
            own = response.text[response.text.index('id="content-main"') :]
            assert "style=" not in own
            assert "<script" not in own


def test_the_log_names_who_paused_what(admin_client, admin_user):
    confirm(admin_client, admin_client.post(address("queuecontrol_add"), MAIL))
    pause = QueueControl.objects.get()
    confirm(admin_client, admin_client.post(address("queuecontrol_resume", pause.pk)))

    made, ended = LogEntry.objects.order_by("pk")
    assert (made.user, made.object_repr, made.change_message) == (
        admin_user,
        "queue mail",
        "the server is down",
    )
    assert (ended.is_deletion(), ended.object_repr) == (True, "queue mail")
    assert Job.objects.count() == 0


@pytest.mark.parametrize(
    "reason",
    ["[1]", '[{"added": {}}]', "[", "[]", '["added"]', "{}", "null", "", "x" * 200, "1 < 2 & 'a'"],
)
def test_any_reason_can_be_read_in_the_log_again(admin_client, reason):
    confirm(admin_client, admin_client.post(address("queuecontrol_add"), MAIL | {"reason": reason}))

    entry = LogEntry.objects.get()
    assert entry.get_change_message().strip() == reason
    assert str(entry)
    pause = QueueControl.objects.get()
    for page in ("/admin/", address("queuecontrol_history", pause.pk), address(LIST)):
        assert admin_client.get(page).status_code == 200


@pytest.mark.parametrize("text", ["[1]", '["added"]', "{}", "", "[" * 5000])
def test_the_history_page_of_an_object_shows_any_text(admin_client, admin_user, rf, text):
    job = JobFactory()
    request = rf.get("/")
    request.user = admin_user
    audit.note(request, Job, CHANGE, str(job), text, object_id=job.pk)

    page = admin_client.get(address("job_history", job.pk))

    assert page.status_code == 200
    assert text in page.content.decode().replace("&quot;", '"')
    assert admin_client.get("/admin/").status_code == 200
