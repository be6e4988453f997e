from datetime import timedelta

import django
import pytest

from django_jobqueue import ExecutionProfile, registry
from django_jobqueue.backends import task_limits
from django_jobqueue.models import Job
from django_jobqueue.task_backend.limits import LIMITS_ON
from django_jobqueue.testing import drain
from tests.taskapp import tasks
from tests.taskapp.framework import InvalidTask, task


@pytest.fixture
def functions():
    """Make module-level functions that are nobody's task yet."""

    def make(name="limited"):
        def function():
            """Do nothing."""

        function.__qualname__ = function.__name__ = name
        function.__module__ = "tests.taskapp.tasks"
        return function

    yield make
    for function in vars(tasks).values():
        vars(getattr(function, "func", tasks.add.func)).pop(LIMITS_ON, None)


def handler(name="limited"):
    return registry.get(f"tests.taskapp.tasks.{name}")


def test_without_any_the_sites_defaults_apply():
    assert handler("add").profile is None
    assert handler("add").provider is None


def test_the_decorator_stands_below_or_above(functions):
    limits = task_limits(max_attempts=7, max_runtime=timedelta(minutes=2), provider="acme")

    task(limits(functions("below")))
    limits(task(functions("above")))

    for name in ("below", "above"):
        assert handler(name).profile == ExecutionProfile(timedelta(minutes=2), 7)
        assert handler(name).provider == "acme"


@pytest.mark.skipif(django.VERSION < (6, 1), reason="@task takes no other arguments before 6.1")
def test_arguments_of_task_come_before_the_decorator(functions):
    limits = task_limits(max_attempts=7, provider="acme")

    made = task(max_attempts=2, max_runtime=30)(limits(functions()))

    assert handler().profile == ExecutionProfile(30, 2)
    assert handler().provider == "acme"
    assert made.using(priority=3).max_attempts == 2


@pytest.mark.skipif(django.VERSION < (6, 1), reason="@task takes no other arguments before 6.1")
def test_an_argument_that_nobody_knows_is_an_error(functions):
    with pytest.raises(TypeError, match="max_tries"):
        task(max_tries=2)(functions())


def test_options_come_last_and_are_those_of_the_tasks_own_alias(task_site, functions):
    task_site(
        default={"OPTIONS": {"max_attempts": 9, "provider": "house"}},
        other={"OPTIONS": {"max_attempts": 1, "max_runtime": 5, "result_retention": 60}},
    )

    task(task_limits(max_runtime=3)(functions("mine")))
    task(backend="other")(functions("others"))

    assert handler("mine").profile == ExecutionProfile(3, 9)
    assert handler("mine").provider == "house"
    assert handler("mine").history_retention is None
    assert handler("others").profile == ExecutionProfile(5, 1)
    assert handler("others").provider is None
    assert handler("others").history_retention == timedelta(minutes=1)


@pytest.mark.django_db
def test_options_decide_how_often_a_task_is_tried(task_site):
    task_site(default={"OPTIONS": {"max_attempts": 2}})
    result = tasks.fail.enqueue("again")

    drain(raise_errors=False, with_retries=True)

    assert Job.objects.get(pk=result.id).attempts == 2


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"max_attempts": 0}, "max_attempts is 0; expected a whole number from 1 to 32767"),
        ({"max_attempts": "2"}, "max_attempts is '2'; expected"),
        ({"max_runtime": -1}, "max_runtime is -1; expected 0 or more"),
        ({"max_runtime": float("nan")}, "max_runtime is nan"),
        ({"provider": ""}, "provider is ''; expected a string of 1 to 200"),
        ({"provider": 3}, "provider is 3"),
    ],
)
def test_a_wrong_limit_is_an_error_where_it_is_written(functions, limits, said):
    with pytest.raises(InvalidTask, match=said):
        task_limits(**limits)(functions())
    if django.VERSION >= (6, 1):
        with pytest.raises(InvalidTask, match=said):
            task(**limits)(functions())
    assert handler() is None


def test_what_else_is_kept_on_a_function_is_not_the_handlers(functions):
    function = functions()
    vars(function).update(type="other", task=3, provider=7, label="text", process=None)

    task(function)

    assert registry.get("other") is None
    assert handler().type == "tests.taskapp.tasks.limited"
    assert handler().task.func is function
    assert (handler().provider, handler().label) == (None, "")
