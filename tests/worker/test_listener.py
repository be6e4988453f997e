import logging
import queue
import threading

import pytest
from django.db import connection

from django_jobqueue.models import Job
from django_jobqueue.wakeups import CHANNEL, Bell, WakeUp
from django_jobqueue.worker import listener as module
from django_jobqueue.worker.eligibility import Eligibility
from django_jobqueue.worker.listener import Listener, Reception
from tests.marks import on_postgresql, on_sqlite
from tests.proxy import proxied
from tests.radio import radio

SECONDS = 30
STOP_SECONDS = 3
LOOKED = "looked"


class Heard:
    """What a listener passes on, in order: wake-ups, and `LOOKED`."""

    def __init__(self, listener):
        self.listener = listener
        self.queue = queue.SimpleQueue()

    def next(self):
        return self.queue.get(timeout=SECONDS)

    def looked(self):
        assert self.next() == LOOKED


@pytest.fixture
def listening(transactional_db):
    """Start listeners. After the test each has ended, quickly, whatever it was doing."""
    made = []

    def start(using="default", **options):
        heard = Heard(None)
        heard.listener = Listener(
            using, heard.queue.put, lambda: heard.queue.put(LOOKED), **options
        )
        made.append(heard.listener)
        heard.listener.start()
        return heard

    yield start
    for listener in made:
        listener.shut_down()
    for listener in made:
        listener.join(STOP_SECONDS)
        assert not listener.is_alive()
        assert not listener.died


@pytest.fixture
def proxy(transactional_db):
    if connection.settings_dict["HOST"].startswith("/"):
        pytest.skip("the server is reached without TCP")
    with proxied() as made:
        yield made


def listeners():
    """The server's sessions that listen in this database."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_stat_activity WHERE query = %s AND datname = current_database()",
            [f"LISTEN {CHANNEL}"],
        )
        return [pid for (pid,) in cursor.fetchall()]


def warnings(caplog):
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno >= logging.WARNING and record.name == module.logger.name
    ]


@on_postgresql
class TestListening:
    def test_it_looks_once_when_it_begins(self, listening):
        listening().looked()

    def test_an_enqueue_is_heard(self, listening):
        heard = listening()
        heard.looked()

        Job.objects.enqueue("test.echo", queue="a")

        assert heard.next() == WakeUp("a", frozenset({"test.echo"}))

    def test_what_comes_while_nobody_waits_is_heard_in_order(self, listening):
        heard = listening()
        heard.looked()

        for number in range(50):
            Job.objects.enqueue("test.echo", queue=f"q{number}")

        assert [heard.next().queue for _ in range(50)] == [f"q{number}" for number in range(50)]

    def test_a_malformed_message_is_ignored(self, listening):
        heard = listening()
        heard.looked()

        with radio() as sender:
            for payload in ("", "{", "[1]", '{"queue": 7}', "☃", WakeUp("good").encode()):
                sender.say(payload)

        assert heard.next() == WakeUp("good")

    def test_a_receiver_that_raises_ends_nothing(self, transactional_db, caplog):
        calls = queue.SimpleQueue()

        def broken(wake_up):
            calls.put(wake_up.queue)
            raise RuntimeError("no")

        looked = queue.SimpleQueue()
        listener = Listener("default", broken, lambda: looked.put(LOOKED))
        listener.start()
        looked.get(timeout=SECONDS)
        try:
            for name in ("a", "b"):
                Job.objects.enqueue("test.echo", queue=name)
                assert calls.get(timeout=SECONDS) == name
        finally:
            listener.shut_down()
            listener.join(STOP_SECONDS)
        assert looked.empty()

    def test_a_quiet_connection_that_lives_is_kept(self, listening):
        heard = listening(quiet_seconds=0.01)
        heard.looked()

        with radio() as sender:
            for number in range(100):
                sender.say(WakeUp(str(number)).encode())
                assert heard.next() == WakeUp(str(number))

    def test_it_listens_only_while_that_is_wanted(self, listening, monkeypatch):
        monkeypatch.setattr(module, "OFF_SECONDS", 0.01)
        wanted = False
        heard = listening(quiet_seconds=0.01, wanted=lambda: wanted)

        assert listeners() == []
        wanted = True
        heard.looked()
        assert heard.listener.listening.wait(SECONDS)

        wanted = False
        pause = threading.Event()
        while heard.listener.listening.is_set():
            pause.wait(0.01)
        wanted = True
        heard.looked()


@on_postgresql
class TestABrokenConnection:
    def test_a_killed_one_is_replaced_and_it_looks_at_once(self, listening, caplog):
        caplog.set_level(logging.INFO)
        heard = listening()
        heard.looked()
        (pid,) = listeners()

        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s)", [pid])
        heard.looked()
        Job.objects.enqueue("test.echo")

        assert heard.next() == WakeUp("default", frozenset({"test.echo"}))
        (warning,) = warnings(caplog)
        assert "The listener lost its connection" in warning
        assert "The listener is back" in caplog.text

    def test_a_silently_cut_one_is_noticed_and_replaced(self, proxy, listening, monkeypatch):
        monkeypatch.setattr(module, "ANSWER_SECONDS", 1)
        heard = listening(quiet_seconds=0.1)
        heard.looked()

        proxy.freeze()
        Job.objects.enqueue("test.echo", queue="missed")
        heard.looked()
        Job.objects.enqueue("test.echo", queue="heard")

        assert heard.next().queue == "heard"

    def test_an_unreachable_database_is_tried_until_it_answers(self, proxy, listening, caplog):
        proxy.refusing = True
        heard = listening()
        proxy.wait_for_connections(3)
        proxy.refusing = False

        heard.looked()

        assert len(warnings(caplog)) == 1

    def test_a_listener_without_a_database_ends_at_once(self, proxy, listening):
        proxy.refusing = True
        listening()
        proxy.wait_for_connections(4)

    def test_a_listener_that_waits_for_an_answer_ends_at_once(self, proxy, listening, monkeypatch):
        monkeypatch.setattr(module, "ANSWER_SECONDS", SECONDS)
        heard = listening(quiet_seconds=0.01)
        heard.looked()
        proxy.freeze()

    def test_a_pooler_that_swallows_notifications_is_told_once(
        self, proxy, listening, caplog, monkeypatch
    ):
        monkeypatch.setattr(module, "ANSWER_SECONDS", 0.2)
        monkeypatch.setattr(module, "RETRY_SECONDS", 0.01)
        proxy.deaf = True
        heard = listening()

        proxy.wait_for_connections(6)

        (warning,) = warnings(caplog)
        assert "Idle slots look every POLL_INTERVAL instead" in warning
        assert not heard.listener.listening.is_set()
        assert heard.queue.empty()
        proxy.deaf = False
        heard.looked()


@on_sqlite
def test_a_database_without_notifications_is_told_once(listening, caplog):
    caplog.set_level(logging.INFO)
    heard = listening()

    heard.listener.join(SECONDS)

    assert heard.listener.finished
    assert len([r for r in caplog.records if "cannot wake workers" in r.getMessage()]) == 1


class TestReception:
    @pytest.mark.parametrize(
        ("types", "queues", "wake_up", "rings"),
        [
            (None, None, WakeUp("a", frozenset({"test.echo"})), True),
            (None, None, WakeUp("a", frozenset({"unknown"})), False),
            (None, None, WakeUp("a", frozenset({"unknown", "test.echo"})), True),
            (None, None, WakeUp(), True),
            (["test.echo"], None, WakeUp("a", frozenset({"test.fail"})), False),
            (["test.echo"], None, WakeUp("a", None), True),
            (None, ("a",), WakeUp("a", None), True),
            (None, ("a",), WakeUp("b", None), False),
            (None, ("a",), WakeUp(None, None), True),
            (None, None, WakeUp(ready=False, due_in=5.0), False),
        ],
    )
    def test_the_bell_rings_for_what_a_slot_may_take(self, types, queues, wake_up, rings):
        bell = Bell()
        ticket = bell.ticket()

        Reception(bell, Eligibility(types, queues), lambda _: None)(wake_up)

        assert bell.wait(ticket, 0) is rings

    def test_a_due_time_is_passed_on_for_whatever_type_and_queue(self):
        due = []
        reception = Reception(Bell(), Eligibility(["test.echo"], ("a",)), due.append)

        reception(WakeUp("b", frozenset({"other"}), ready=False, due_in=3.5))
        reception(WakeUp("b", frozenset({"other"})))

        assert due == [3.5]
