"""What people do with rows, and what `sync` does."""

from contextlib import nullcontext

import pytest
from django.core.exceptions import ValidationError

from django_jobqueue import conf, job_handler, schedule
from django_jobqueue.models import CatchUp, Schedule
from django_jobqueue.schedules.declaring import declared
from django_jobqueue.schedules.syncing import sync
from tests.schedules.conftest import tick

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def declare(settings):
    """Declare the schedule `nightly` and sync it."""
    settings.JOBQUEUE = {"PURGE_ENABLED": False}
    conf.settings.reload()

    def run(cron="0 3 * * *", **options):
        def build(job):
            pass

        with pytest.warns(RuntimeWarning) if run.again else nullcontext():
            schedule("nightly", cron, **options)(job_handler("reports.build")(build))
        run.again = True
        sync("default", declared().values())
        return Schedule.objects.get(name="nightly")

    run.again = False
    return run


class TestSync:
    def test_a_declaration_becomes_a_row(self, declare):
        row = declare(
            timezone="Europe/Berlin",
            payload={"a": 1},
            catch_up="all",
            limit=7,
            queue="q",
            priority=3,
        )

        assert (row.type, row.cron, row.timezone) == ("reports.build", "0 3 * * *", "Europe/Berlin")
        assert (row.payload, row.catch_up, row.limit) == ({"a": 1}, CatchUp.ALL, 7)
        assert (row.queue, row.priority) == ("q", 3)
        assert row.declared_in_code
        assert not row.paused
        assert row.next_tick_at is None

    def test_an_unchanged_one_writes_nothing(self, declare, django_assert_num_queries):
        declare()
        with django_assert_num_queries(1):
            sync("default", declared().values())

    def test_a_changed_one_updates_the_row_and_keeps_the_pause(self, declare, make_schedule):
        declare()
        Schedule.objects.update(paused=True)

        row = declare(payload={"b": 2})

        assert row.payload == {"b": 2}
        assert row.paused

    def test_another_rhythm_counts_from_now(self, declare):
        declare()
        Schedule.objects.update(next_tick_at=tick())

        assert declare(payload={"b": 2}).next_tick_at == tick()
        assert declare("0 4 * * *").next_tick_at is None

    def test_a_row_made_by_hand_under_that_name_counts_and_is_told(self, declare, caplog):
        Schedule.objects.create(name="nightly", type="test.echo", cron="0 9 * * *")

        row = declare()

        assert (row.cron, row.type, row.declared_in_code) == ("0 9 * * *", "test.echo", False)
        assert "was also made by hand" in caplog.text

    def test_a_row_that_is_not_declared_any_more_is_left(self, declare):
        declare()
        sync("default", [])

        assert Schedule.objects.filter(name="nightly", declared_in_code=True).exists()


class TestClean:
    def test_a_usable_row_passes(self):
        Schedule(name="a", type="test.echo", cron="0 3 * * *").full_clean()

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("cron", "61 * * * *"),
            ("cron", "@daily"),
            ("timezone", "Mars/Olympus"),
            ("catch_up", "sometimes"),
            ("limit", 0),
            ("payload", ["no object"]),
        ],
    )
    def test_a_mistake_is_shown_at_its_field(self, field, value):
        fields = {"name": "a", "type": "test.echo", "cron": "0 3 * * *"} | {field: value}

        with pytest.raises(ValidationError) as caught:
            Schedule(**fields).full_clean()

        assert list(caught.value.message_dict) == [field]


class TestSave:
    def test_saving_does_not_take_back_what_a_worker_did_meanwhile(self, make_schedule):
        row = make_schedule()
        moved = tick(-1)
        Schedule.objects.update(next_tick_at=moved, last_tick_at=row.next_tick_at)

        row.payload = {"new": True}
        row.save()

        row = Schedule.objects.get()
        assert row.payload == {"new": True}
        assert (row.next_tick_at, row.last_tick_at is None) == (moved, False)

    @pytest.mark.parametrize(
        "changes", [{"cron": "0 4 * * *"}, {"timezone": "Europe/Berlin"}, {"paused": False}]
    )
    @pytest.mark.parametrize("named", [False, True])
    def test_another_rhythm_and_the_end_of_a_pause_count_from_now(
        self, make_schedule, changes, named
    ):
        row = make_schedule(paused=True)
        for name, value in changes.items():
            setattr(row, name, value)

        row.save(update_fields=list(changes) if named else None)

        assert row.next_tick_at is None
        assert Schedule.objects.get().next_tick_at is None

    @pytest.mark.parametrize("changes", [{"payload": {"a": 1}}, {"paused": True}, {"limit": 3}])
    def test_any_other_change_keeps_the_next_tick(self, make_schedule, changes):
        row = make_schedule()
        for name, value in changes.items():
            setattr(row, name, value)

        row.save()

        assert Schedule.objects.get().next_tick_at is not None

    def test_update_or_create_counts_from_now_too(self, make_schedule):
        make_schedule()

        Schedule.objects.update_or_create(name="yearly", defaults={"cron": "5 * * * *"})

        row = Schedule.objects.get()
        assert (row.cron, row.next_tick_at) == ("5 * * * *", None)
