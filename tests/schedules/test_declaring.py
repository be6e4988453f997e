import subprocess
import sys

import pytest

from django_jobqueue import JobHandler, conf, job_handler, registry, schedule
from django_jobqueue.exceptions import InvalidSchedule
from django_jobqueue.handlers.purge import PURGE_TYPE, PurgeHistory
from django_jobqueue.schedules.declaring import Declaration, declared


def own():
    """What is declared, without the package's own."""
    return {name: found for name, found in declared().items() if name != PURGE_TYPE}


class TestWhereItStands:
    def test_above_the_handler(self):
        @schedule("nightly", "0 3 * * *")
        @job_handler("reports.build")
        def build(job):
            pass

        assert own()["nightly"].type == "reports.build"
        assert registry.get("reports.build") is build

    def test_below_the_handler(self):
        @job_handler("reports.build")
        @schedule("nightly", "0 3 * * *")
        def build(job):
            pass

        assert own()["nightly"].type == "reports.build"

    def test_above_and_below_and_several(self):
        @schedule("a", "0 3 * * *")
        @schedule("b", "0 4 * * *")
        @job_handler("reports.build")
        @schedule("c", "0 5 * * *")
        @schedule("d", "0 6 * * *")
        def build(job):
            pass

        assert {name: found.cron for name, found in own().items()} == {
            "a": "0 3 * * *",
            "b": "0 4 * * *",
            "c": "0 5 * * *",
            "d": "0 6 * * *",
        }

    def test_on_a_class(self):
        @schedule("nightly", "0 3 * * *")
        class Build(JobHandler):
            type = "reports.build"

            def process(self, job):
                pass

        registry.register(Build())

        assert own()["nightly"].type == "reports.build"

    def test_on_an_async_handler(self):
        @schedule("nightly", "0 3 * * *")
        @job_handler("reports.build")
        async def build(job):
            pass

        assert own()["nightly"].type == "reports.build"

    def test_a_subclass_does_not_inherit_it(self):
        @schedule("nightly", "0 3 * * *")
        class Build(JobHandler):
            type = "reports.build"

            def process(self, job):
                pass

        class BuildMore(Build):
            type = "reports.build-more"

        registry.register(BuildMore())

        assert own() == {}

    def test_a_handler_that_is_not_registered_declares_nothing(self):
        @schedule("nightly", "0 3 * * *")
        class Build(JobHandler):
            type = "reports.build"

            def process(self, job):
                pass

        assert own() == {}

    @pytest.mark.parametrize("target", [7, "x", int, None])
    def test_anything_else_is_refused(self, target):
        with pytest.raises(InvalidSchedule, match="expected a handler"):
            schedule("nightly", "0 3 * * *")(target)

    def test_the_same_name_twice_on_one_handler_is_refused(self):
        def build(job):
            pass

        once = schedule("nightly", "0 3 * * *")(build)

        with pytest.raises(InvalidSchedule, match="declared twice"):
            schedule("nightly", "0 4 * * *")(once)

    def test_the_same_name_on_two_handlers_is_told_and_the_first_counts(self, caplog):
        conf.settings.reload()
        for job_type in ("b", "a"):

            @schedule("nightly", "0 3 * * *")
            @job_handler(job_type)
            def build(job):
                pass

        assert own()["nightly"].type == "a"
        assert "declared for a and for b" in caplog.text


class TestWhatItSays:
    def test_the_defaults(self):
        @schedule("nightly", "0 3 * * *")
        @job_handler("reports.build")
        def build(job):
            pass

        assert own()["nightly"] == Declaration(
            name="nightly",
            type="reports.build",
            cron="0 3 * * *",
            timezone="UTC",
            payload={},
            catch_up="skip",
            limit=10,
            queue="default",
            priority=0,
        )

    def test_everything(self):
        @schedule(
            "nightly",
            "0 3 * * *",
            timezone="Europe/Berlin",
            payload={"all": True},
            catch_up="all",
            limit=3,
            queue="slow",
            priority=5,
        )
        @job_handler("reports.build")
        def build(job):
            pass

        found = own()["nightly"]
        assert (found.timezone, found.payload, found.catch_up) == (
            "Europe/Berlin",
            {"all": True},
            "all",
        )
        assert (found.limit, found.queue, found.priority) == (3, "slow", 5)

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ({"cron": "61 * * * *"}, "Schedule 'nightly': cron is '61 * * * *'"),
            ({"cron": "@daily"}, "expected minute, hour"),
            ({"cron": None}, "expected a string"),
            ({"timezone": "Mars/Olympus"}, "timezone is 'Mars/Olympus'; expected a name"),
            ({"timezone": None}, "timezone is None"),
            ({"catch_up": "sometimes"}, "catch_up is 'sometimes'; expected skip, once, all"),
            ({"catch_up": None}, "catch_up is None"),
            ({"catch_up": []}, "catch_up is"),
            ({"limit": 0}, "limit is 0; expected a whole number from 1"),
            ({"payload": ["no", "object"]}, "payload is of type list"),
            ({"payload": {"at": {1, 2}}}, "payload.at is of type set"),
            ({"queue": ""}, "queue is empty"),
            ({"priority": "high"}, "priority is 'high'"),
            ({"name": ""}, "expected a string of 1 to 200"),
            ({"name": None}, "expected a string of 1 to 200"),
            ({"name": "n" * 201}, "expected a string of 1 to 200"),
            ({"name": "a\0b"}, "NUL"),
        ],
    )
    def test_a_mistake_is_an_error_at_the_declaration(self, arguments, words):
        arguments = {"name": "nightly", "cron": "0 3 * * *"} | arguments

        with pytest.raises(InvalidSchedule, match=words.replace("*", r"\*")):
            schedule(**arguments)

    def test_the_payload_is_a_copy(self):
        payload = {"ids": [1]}

        @schedule("nightly", "0 3 * * *", payload=payload)
        @job_handler("reports.build")
        def build(job):
            pass

        payload["ids"].append(2)

        assert own()["nightly"].payload == {"ids": [1]}


class TestTheNightlyPurge:
    def test_it_is_such_a_schedule(self, settings):
        settings.JOBQUEUE = {}
        settings.TIME_ZONE = "Europe/Berlin"
        registry._handlers[PURGE_TYPE] = PurgeHistory()

        purge = declared()[PURGE_TYPE]

        assert (purge.type, purge.cron, purge.priority) == (PURGE_TYPE, "17 3 * * *", 100)
        assert (purge.timezone, purge.catch_up) == ("Europe/Berlin", "once")

    def test_it_is_gone_with_the_setting(self, settings):
        settings.JOBQUEUE = {"PURGE_ENABLED": False}
        registry._handlers[PURGE_TYPE] = PurgeHistory()

        assert PURGE_TYPE not in declared()


def test_it_can_be_used_before_django_is_set_up():
    code = "\n".join(
        [
            "from django_jobqueue import job_handler, schedule",
            "@schedule('nightly', '0 3 * * *', payload={'a': 1})",
            "@job_handler('reports.build')",
            "def build(job): pass",
            "import django.apps, django.conf",
            "assert not django.apps.apps.ready",
            "assert not django.conf.settings.configured",
        ]
    )

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
