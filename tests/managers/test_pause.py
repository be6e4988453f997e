import pytest

from django_jobqueue.models import Job, QueueControl
from tests.claims import claimed
from tests.factories import JobFactory

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(("kind", "name"), [("queue", "default"), ("type", "test.echo")])
def test_a_pause_lasts_until_it_is_resumed(kind, name):
    job = JobFactory()

    assert Job.objects.pause(kind, name) is True
    assert claimed() == []
    assert Job.objects.resume(kind, name) is True
    assert claimed() == [job]


def test_a_second_pause_changes_nothing_and_says_so():
    Job.objects.pause("queue", "mail", reason="provider down")
    before = QueueControl.objects.values().get()

    assert Job.objects.pause("queue", "mail", reason="again") is False
    assert QueueControl.objects.values().get() == before
    assert before["reason"] == "provider down"
    assert before["paused_at"] is not None


def test_what_is_not_paused_cannot_be_resumed():
    Job.objects.pause("queue", "mail")

    assert Job.objects.resume("queue", "other") is False
    assert Job.objects.resume("type", "mail") is False
    assert QueueControl.objects.count() == 1


@pytest.mark.parametrize("transition", ["pause", "resume"])
def test_only_queues_and_types_are_paused(transition):
    with pytest.raises(ValueError, match="kind is 'worker'; expected 'queue' or 'type'"):
        getattr(Job.objects, transition)("worker", "mail")
