from io import StringIO

import pytest
from django.core import checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.test import override_settings

from django_jobqueue.conf import CHECK_TAG


def found(**jobqueue):
    with override_settings(JOBQUEUE=jobqueue):
        return checks.run_checks(tags=[CHECK_TAG], databases=[])


def ids(messages):
    return [message.id.removeprefix("django_jobqueue.") for message in messages]


def test_a_good_site_has_no_message():
    assert found() == []
    assert found(WORKER_MODE="system", SYSTEM_MODE_EXTRA_TYPES=["test.echo"], LEASE_CAP=None) == []


def test_an_unknown_key_is_e001():
    (message,) = found(WORKER_CONCURENCY=3)

    assert message.id == "django_jobqueue.E001"
    assert message.level == checks.ERROR
    assert message.msg == "JOBQUEUE['WORKER_CONCURENCY'] is not a setting of django-jobqueue."
    assert message.hint.startswith("Remove it, or use one of: ")


def test_a_wrong_value_is_e002():
    (message,) = found(MAX_ATTEMPTS=0)

    assert message.id == "django_jobqueue.E002"
    assert message.level == checks.ERROR
    assert message.msg == (
        "JOBQUEUE['MAX_ATTEMPTS'] is 0; expected a whole number from 1 to 32767."
    )
    assert message.hint == "Correct it, or leave it out for the default, 3."


def test_a_dict_that_is_none_is_e002():
    with override_settings(JOBQUEUE=["all"]):
        assert ids(checks.run_checks(tags=[CHECK_TAG], databases=[])) == ["E002"]


def test_advice_is_given_beside_an_unknown_key():
    assert ids(found(TYPO=1, WORKER_MODE="sytem")) == ["E001", "W001"]


def test_every_mistake_is_told_and_advice_waits_for_their_end():
    messages = found(TYPO=1, NOTIFY="no", LEASE_CAP=-1, WORKER_MODE="sytem")

    assert ids(messages) == ["E001", "E002", "E002"]


@pytest.mark.parametrize("mode", ["sytem", "", "all,system"])
def test_an_unknown_mode_is_w001(mode):
    (message,) = found(WORKER_MODE=mode)

    assert message.id == "django_jobqueue.W001"
    assert message.level == checks.WARNING
    assert message.msg == f'JOBQUEUE["WORKER_MODE"] is {mode!r}; expected all, system or off.'
    assert 'run as "all"' in message.hint


@pytest.mark.parametrize("mode", ["all", " System ", "OFF", None, lambda: "sytem"])
def test_a_mode_in_any_case_or_from_a_callable_is_fine(mode):
    assert found(WORKER_MODE=mode) == []


@pytest.mark.parametrize("concurrency", [0, -1])
def test_a_worker_without_slots_is_w002(concurrency):
    (message,) = found(WORKER_CONCURRENCY=concurrency)

    assert message.id == "django_jobqueue.W002"
    assert message.level == checks.WARNING
    assert f"is {concurrency}: workers run no jobs" in message.msg


def test_extra_types_without_a_handler_are_w003():
    (message,) = found(SYSTEM_MODE_EXTRA_TYPES="test.echo,test.lost,test.gone")

    assert message.id == "django_jobqueue.W003"
    assert message.level == checks.WARNING
    assert message.msg.endswith("names types without a handler: test.lost, test.gone.")


@pytest.mark.parametrize(("cap", "expected"), [(14.9, ["W004"]), (15, [])])
def test_a_very_short_lease_is_w004(cap, expected):
    messages = found(LEASE_CAP=cap)

    assert ids(messages) == expected
    assert all(message.level == checks.WARNING for message in messages)


def test_all_advice_is_given_at_once():
    messages = found(
        WORKER_MODE="sytem",
        WORKER_CONCURRENCY=0,
        SYSTEM_MODE_EXTRA_TYPES=["test.lost"],
        LEASE_CAP=1,
    )

    assert ids(messages) == ["W001", "W002", "W003", "W004"]


def test_the_check_command_fails_on_a_wrong_setting():
    with (
        override_settings(JOBQUEUE={"POLL_INTERVAL": 0}),
        pytest.raises(SystemCheckError, match=r"\(django_jobqueue.E002\)"),
    ):
        call_command("check", databases=[], stderr=StringIO())


def test_the_check_command_passes_with_advice():
    output = StringIO()

    with override_settings(JOBQUEUE={"WORKER_MODE": "sytem"}):
        call_command("check", databases=[], stderr=output)

    assert "django_jobqueue.W001" in output.getvalue()
