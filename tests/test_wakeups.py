import json
import logging
import threading
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import connection, connections, transaction
from hypothesis import given
from hypothesis import strategies as st

from django_jobqueue import JobRequest, wakeups
from django_jobqueue.models import Job
from django_jobqueue.wakeups import Bell, WakeUp, decode
from tests.radio import radio

SECONDS = 30
A_QUEUE = frozenset({"test.echo"})


@contextmanager
def rolled_back():
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture
def told(transactional_db):
    """The wake-ups that pools of this process get."""
    wake_ups = []
    wakeups.subscribe(wake_ups.append)
    yield wake_ups
    wakeups.unsubscribe(wake_ups.append)


@pytest.fixture
def channel(transactional_db):
    if connection.vendor != "postgresql":
        pytest.skip("only PostgreSQL has NOTIFY")
    with radio() as receiver:
        yield receiver


class TestBell:
    def test_a_ring_ends_the_wait_of_everybody(self):
        bell = Bell()
        ticket = bell.ticket()
        woken = []
        threads = [
            threading.Thread(target=lambda: woken.append(bell.wait(ticket, SECONDS)))
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()

        bell.ring()

        for thread in threads:
            thread.join(SECONDS)
        assert woken == [True] * 3

    def test_a_ring_between_the_ticket_and_the_wait_is_not_lost(self):
        bell = Bell()
        ticket = bell.ticket()
        bell.ring()

        assert bell.wait(ticket, SECONDS)

    def test_a_wait_without_a_ring_says_so(self):
        bell = Bell()

        assert not bell.wait(bell.ticket(), 0)


class TestMessages:
    @given(
        st.builds(
            WakeUp,
            queue=st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=100),
            types=st.none() | st.frozensets(st.text(st.characters(exclude_categories=["Cs"]))),
            ready=st.booleans(),
            due_in=st.none() | st.floats(0, 1e9),
        )
    )
    def test_what_is_encoded_is_decoded(self, wake_up):
        assert decode(wake_up.encode()) == wake_up

    def test_more_types_than_a_message_holds_become_any_type(self):
        wake_up = WakeUp("q" * 100, frozenset(f"{number:0>200}" for number in range(50)))

        text = wake_up.encode()

        assert len(text.encode()) < 8_000
        assert decode(text) == WakeUp("q" * 100, None)

    def test_the_longest_queue_name_fits(self):
        wake_up = WakeUp("\x01" * 100, frozenset({"ü" * 200}), due_in=1 / 3)

        assert decode(wake_up.encode()) == wake_up

    @pytest.mark.parametrize(
        "payload",
        [
            "",
            "{",
            "[]",
            "null",
            "7",
            "{}",
            '{"queue": 7, "types": [], "ready": true, "in": null}',
            '{"queue": "q", "types": "test.echo", "ready": true, "in": null}',
            '{"queue": "q", "types": [7], "ready": true, "in": null}',
            '{"queue": "q", "types": null, "ready": "yes", "in": null}',
            '{"queue": "q", "types": null, "ready": true, "in": -1}',
            '{"queue": "q", "types": null, "ready": true, "in": NaN}',
            '{"queue": "q", "types": null, "ready": true, "in": true}',
            '{"queue": "q", "types": null, "ready": true}',
            "[" * 100_000,
        ],
    )
    def test_a_malformed_message_is_none(self, payload):
        assert decode(payload) is None

    @given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists))
    def test_whatever_json_holds_never_raises(self, value):
        decode(json.dumps(value))
        decode(json.dumps({"queue": value, "types": value, "ready": value, "in": value}))


class TestInThisProcess:
    def test_an_enqueue_in_autocommit_wakes_at_once(self, told):
        Job.objects.enqueue("test.echo", queue="a")

        assert told == [WakeUp("a", A_QUEUE)]

    def test_an_enqueue_in_a_transaction_wakes_after_the_commit(self, told):
        with transaction.atomic():
            Job.objects.enqueue("test.echo")
            assert told == []

        assert told == [WakeUp("default", A_QUEUE)]

    def test_the_job_can_be_seen_when_the_wake_up_comes(self, told):
        seen = []

        def look(wake_up):
            other = connections.create_connection("default")
            try:
                with other.cursor() as cursor:
                    cursor.execute("SELECT count(*) FROM django_jobqueue_job")
                    seen.extend(cursor.fetchone())
            finally:
                other.close()

        wakeups.subscribe(look)
        try:
            with transaction.atomic():
                Job.objects.enqueue("test.echo")
        finally:
            wakeups.unsubscribe(look)

        assert seen == [1]

    def test_a_transaction_wakes_once_a_queue_with_all_types(self, told):
        with transaction.atomic():
            for job_type in ("test.echo", "test.fail", "test.echo"):
                with transaction.atomic():
                    Job.objects.enqueue(job_type, queue="a")
            Job.objects.enqueue("test.note", queue="b")
            Job.objects.enqueue_many([JobRequest("test.async", queue="a"), JobRequest("test.echo")])

        assert sorted(told, key=lambda wake_up: wake_up.queue) == [
            WakeUp("a", frozenset({"test.echo", "test.fail", "test.async"})),
            WakeUp("b", frozenset({"test.note"})),
            WakeUp("default", A_QUEUE),
        ]

    def test_callbacks_of_the_site_in_between_change_nothing(self, told):
        with transaction.atomic():
            for _ in range(3):
                Job.objects.enqueue("test.echo")
                transaction.on_commit(lambda: None)

        assert told == [WakeUp("default", A_QUEUE)]

    def test_a_callback_that_enqueues_wakes_for_its_own_job(self, told):
        with transaction.atomic():
            transaction.on_commit(lambda: Job.objects.enqueue("test.echo", queue="later"))
            Job.objects.enqueue("test.echo", queue="first")

        assert {wake_up.queue for wake_up in told} == {"first", "later"}
        assert len(told) == 2

    def test_a_callback_with_a_transaction_of_its_own_loses_nothing(self, told):
        @transaction.atomic
        def more():
            Job.objects.enqueue("test.echo", queue="later")

        with transaction.atomic():
            Job.objects.enqueue("test.echo", queue="first")
            transaction.on_commit(more)
            Job.objects.enqueue("test.echo", queue="second")

        assert {wake_up.queue for wake_up in told} == {"first", "second", "later"}
        assert len(told) == 3

    def test_a_rollback_wakes_nobody(self, told):
        with rolled_back():
            Job.objects.enqueue("test.echo")

        assert told == []

    def test_what_follows_a_rollback_is_announced_alone(self, told):
        with rolled_back():
            Job.objects.enqueue("test.echo", queue="gone")
        with transaction.atomic():
            Job.objects.enqueue("test.echo", queue="kept")

        assert told == [WakeUp("kept", A_QUEUE)]

    @pytest.mark.parametrize("order", ["before", "after"])
    def test_a_savepoint_rolled_back_takes_its_own_wake_ups_only(self, told, order):
        with transaction.atomic():
            if order == "before":
                Job.objects.enqueue("test.echo", queue="kept")
            with rolled_back():
                Job.objects.enqueue("test.echo", queue="gone")
            if order == "after":
                Job.objects.enqueue("test.echo", queue="kept")

        assert told == [WakeUp("kept", A_QUEUE)]

    def test_a_duplicate_wakes_nobody(self, told):
        Job.objects.enqueue("test.echo", dedup_key="one")
        Job.objects.enqueue("test.echo", dedup_key="one")
        Job.objects.enqueue_many([JobRequest("test.echo", dedup_key="one")] * 2)

        assert len(told) == 1

    def test_a_scheduled_job_wakes_with_its_time(self, told):
        Job.objects.enqueue("test.echo", delay=30)

        (wake_up,) = told
        assert not wake_up.ready
        assert 29 < wake_up.due_in <= 30

    def test_the_first_of_several_times_counts(self, told):
        with transaction.atomic():
            Job.objects.enqueue("test.echo", delay=600)
            Job.objects.enqueue("test.echo", delay=timedelta(minutes=1))
            Job.objects.enqueue("test.echo")

        (wake_up,) = told
        assert wake_up.ready
        assert 59 < wake_up.due_in <= 60

    def test_a_time_is_counted_from_the_commit(self, told):
        """A transaction may last; the wait for the due time goes on meanwhile."""
        with transaction.atomic():
            Job.objects.enqueue("test.echo", delay=0.05)
            threading.Event().wait(0.1)

        assert [(wake_up.ready, wake_up.due_in) for wake_up in told] == [(False, 0.0)]

    def test_a_transaction_managed_by_hand_enqueues_without_a_wake_up(self, told):
        transaction.set_autocommit(False)
        try:
            job = Job.objects.enqueue("test.echo")
            transaction.commit()
        finally:
            transaction.set_autocommit(True)

        assert Job.objects.filter(pk=job.pk).exists()
        assert told == []

    def test_a_pool_that_cannot_take_it_harms_nobody(self, told, caplog):
        def broken(wake_up):
            raise RuntimeError("no")

        wakeups._receivers.insert(0, broken)
        try:
            Job.objects.enqueue("test.echo")
        finally:
            wakeups.unsubscribe(broken)

        assert len(told) == 1
        assert "it finds the jobs late" in caplog.text

    def test_unsubscribing_twice_is_harmless(self):
        wakeups.unsubscribe(print)

        assert print not in wakeups._receivers

    def test_many_jobs_of_one_transaction_leave_one_callback(self, told):
        with transaction.atomic():
            for _ in range(20):
                Job.objects.enqueue("test.echo")
            assert len(connection.run_on_commit) == 1

        assert len(told) == 1


class TestThroughTheDatabase:
    def test_a_transaction_is_heard_once_a_queue_with_its_types(self, channel):
        with transaction.atomic():
            Job.objects.enqueue("test.echo", queue="a")
            with transaction.atomic():
                Job.objects.enqueue("test.fail", queue="a")
            Job.objects.enqueue("test.echo", queue="b", delay=60)

        first, second = channel.wake_ups()
        assert first == WakeUp("a", frozenset({"test.echo", "test.fail"}))
        assert (second.queue, second.types, second.ready) == ("b", A_QUEUE, False)
        assert 59 < second.due_in <= 60

    def test_nothing_is_heard_before_the_commit_or_after_a_rollback(self, channel):
        with rolled_back():
            Job.objects.enqueue("test.echo")
            assert channel.heard() == []

        assert channel.heard() == []

    def test_it_is_sent_after_the_transaction_and_not_inside_it(self, channel):
        """NOTIFY inside it would take a lock of the whole database until the commit is done."""
        heard_at_commit = []
        with transaction.atomic():
            transaction.on_commit(lambda: heard_at_commit.append(channel.heard()))
            Job.objects.enqueue("test.echo")

        assert heard_at_commit == [[]]
        assert len(channel.heard()) == 1

    def test_the_setting_turns_it_off(self, channel, told, settings):
        settings.JOBQUEUE = {"NOTIFY": False}
        Job.objects.enqueue("test.echo")

        assert channel.heard() == []
        assert len(told) == 1

    def test_a_wrong_setting_fails_no_enqueue(self, channel, settings, caplog):
        settings.JOBQUEUE = {"NOTIFY": "yes"}

        Job.objects.enqueue("test.echo")

        assert Job.objects.count() == 1
        assert "Workers could not be woken" in caplog.text

    def test_a_connection_that_dies_after_the_commit_fails_no_enqueue(self, channel, caplog):
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            (pid,) = cursor.fetchone()

        with transaction.atomic():
            transaction.on_commit(
                lambda: channel._run("SELECT pg_terminate_backend(%s, 5000)", pid)
            )
            job = Job.objects.enqueue("test.echo")

        connection.close()
        assert Job.objects.filter(pk=job.pk).exists()
        (record,) = [record for record in caplog.records if record.name == wakeups.logger.name]
        assert record.levelno == logging.WARNING

    def test_a_notification_lasts_no_setting(self, channel):
        """The short lock timeout ends with it."""
        with connection.cursor() as cursor:
            cursor.execute("SHOW lock_timeout")
            before = cursor.fetchone()
            Job.objects.enqueue("test.echo")
            cursor.execute("SHOW lock_timeout")

            assert cursor.fetchone() == before
        assert len(channel.heard()) == 1
