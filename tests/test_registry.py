import math
import threading
import warnings
from datetime import timedelta

import pytest

from django_jobqueue import ExecutionProfile, JobHandler, job_handler, registry
from tests.threads import together


class Echo(JobHandler):
    type = "test.registered"

    def process(self, job):
        return job.payload


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    """A copy of the registry, thrown away after the test."""
    monkeypatch.setattr(registry, "_handlers", dict(registry.handlers()))


def handler(job_type="test.registered", **attributes):
    made = Echo()
    made.type = job_type
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def test_a_registered_handler_is_found_by_its_type():
    echo = handler()

    assert registry.register(echo) is echo
    assert registry.get("test.registered") is echo
    assert registry.handlers()["test.registered"] is echo


def test_an_unknown_type_has_no_handler():
    assert registry.get("test.unknown") is None


def test_types_are_sorted():
    registry.register(handler("test.zebra"))
    registry.register(handler("test.aardvark"))

    assert list(registry.types()) == sorted(registry.types())
    assert {"test.zebra", "test.aardvark", "test.echo"} <= set(registry.types())


def test_the_copy_of_the_registry_changes_nothing():
    registry.handlers().clear()

    assert registry.get("test.echo") is not None


def test_a_second_registration_replaces_the_first_and_warns():
    first, second = handler(label="first"), handler(label="second")
    registry.register(first)

    with pytest.warns(RuntimeWarning, match="'test.registered' was registered twice") as caught:
        registry.register(second)

    assert registry.get("test.registered") is second
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_registering_the_same_instance_again_is_no_mistake():
    echo = handler()

    registry.register(echo)
    registry.register(echo)

    assert registry.get("test.registered") is echo


@pytest.mark.parametrize("thing", [Echo, "test.echo", None, lambda job: None])
def test_anything_but_a_handler_instance_is_refused(thing):
    with pytest.raises(TypeError, match="expected an instance of a JobHandler subclass"):
        registry.register(thing)


@pytest.mark.parametrize("job_type", ["", " ", " test", "test\n", None, 7, b"test"])
def test_a_type_that_is_no_plain_string_is_refused(job_type):
    with pytest.raises(TypeError, match="expected a non-empty string without surrounding spaces"):
        registry.register(handler(job_type))


@pytest.mark.parametrize(
    "profile",
    [
        ExecutionProfile(max_runtime=-1, max_attempts=5),
        ExecutionProfile(max_runtime=math.nan),
        ExecutionProfile(max_runtime=10, max_attempts=0),
    ],
)
def test_an_invalid_profile_is_dropped_whole_with_one_warning(profile):
    echo = handler(profile=profile)

    with pytest.warns(RuntimeWarning) as caught:
        registry.register(echo)

    (warning,) = caught
    assert str(warning.message).startswith(
        "The profile of job type 'test.registered' is ignored: max_"
    )
    assert warning.filename == __file__
    assert echo.profile is None
    assert registry.get("test.registered") is echo


def test_a_profile_that_is_none_at_all_is_dropped_like_an_invalid_one():
    with pytest.warns(RuntimeWarning, match="The profile of job type 'test.registered' is ignored"):
        registry.register(handler(profile={"max_attempts": 3}))


def test_a_dropped_profile_of_a_class_leaves_its_other_instances_alone():
    class Limited(Echo):
        profile = ExecutionProfile(max_attempts=0)

    with pytest.warns(RuntimeWarning):
        registry.register(Limited())

    assert Limited.profile == ExecutionProfile(max_attempts=0)


@pytest.mark.parametrize(
    "profile",
    [None, ExecutionProfile(), ExecutionProfile(max_runtime=0), ExecutionProfile(30, 5)],
)
def test_a_valid_profile_is_kept(profile):
    echo = handler(profile=profile)

    registry.register(echo)

    assert echo.profile == profile


@pytest.mark.parametrize("retention", [-1, math.nan, "30d", True, timedelta(days=-1)])
def test_an_unusable_retention_is_dropped_with_one_warning(retention):
    echo = handler(history_retention=retention, profile=ExecutionProfile(max_attempts=2))

    with pytest.warns(RuntimeWarning) as caught:
        registry.register(echo)

    (warning,) = caught
    assert str(warning.message).startswith(
        "The history_retention of job type 'test.registered' is ignored: it is "
    )
    assert warning.filename == __file__
    assert echo.history_retention is None
    assert echo.profile == ExecutionProfile(max_attempts=2)
    assert registry.get("test.registered") is echo


@pytest.mark.parametrize("retention", [None, 0, 3600, timedelta(days=3650)])
def test_a_usable_retention_is_kept(retention):
    echo = registry.register(handler(history_retention=retention))

    assert echo.history_retention == retention


def test_the_decorator_takes_a_retention():
    @job_handler("test.registered", history_retention=timedelta(days=400))
    def kept(job):
        pass

    assert kept.history_retention == timedelta(days=400)
    assert registry.get("test.registered") is kept


def test_the_decorator_warns_where_it_is_written():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")

        @job_handler("test.registered", max_attempts=0, history_retention=-1)
        def limited(job):
            pass

    assert (limited.profile, limited.history_retention) == (None, None)
    assert [warning.filename for warning in caught] == [__file__, __file__]


def test_types_that_no_node_can_run_are_told():
    class NodeEligible(Echo):
        result_schema = {"type": "object"}  # noqa: RUF012 (as a site would write it)

        def persist_result(self, job, result):
            pass

    class HalfEligible(Echo):
        result_schema = {"type": "object"}  # noqa: RUF012 (as a site would write it)

    for job_type, made in (("test.node", NodeEligible()), ("test.half", HalfEligible())):
        made.type = job_type
        registry.register(made)

    assert registry.get("test.node").node_eligible
    assert "test.node" not in registry.server_only_types()
    assert {"test.half", "test.echo"} <= set(registry.server_only_types())


def test_threads_may_register_at_once():
    names = [f"test.thread-{number}" for number in range(8)]
    stop = threading.Event()

    def read():
        while not stop.is_set():
            assert registry.types() == tuple(sorted(registry.types()))
            registry.handlers()
        return True

    def register():
        for name in names:
            registry.register(handler(name))
        stop.set()

    together(read, register)

    assert set(names) <= set(registry.types())
