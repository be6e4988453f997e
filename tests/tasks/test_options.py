import subprocess
import sys
from datetime import timedelta

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connections, transaction

from django_jobqueue.exceptions import InvalidJob, InvalidPayload
from django_jobqueue.models import Job
from django_jobqueue.task_backend.options import Options
from django_jobqueue.testing import drain
from tests.aliases import alias
from tests.checks.looking import checked
from tests.taskapp import tasks
from tests.taskapp.framework import task_backends


def by_first_argument(task, args, kwargs):
    return str(args[0]) if args else None


def by_what_it_takes_out(task, args, kwargs):
    return str(kwargs.pop("one")) + str(args)


def test_what_is_given_becomes_what_is_used():
    given = {
        "max_attempts": 4,
        "max_runtime": 60,
        "provider": "acme",
        "database": "default",
        "dedup": "tests.tasks.test_options.by_first_argument",
        "result_retention": 90,
    }

    options = Options.of("default", given)

    assert (options.limits.max_attempts, options.limits.max_runtime) == (4, 60)
    assert options.limits.provider == "acme"
    assert options.database == "default"
    assert options.dedup is by_first_argument
    assert options.result_retention == timedelta(seconds=90)
    assert Options.of("default", dict.fromkeys(given)) == Options()


WRONG = [
    ({"max_attempt": 3}, "E009", "'max_attempt'] is no option of this backend."),
    ({"max_attempts": 0}, "E010", "is 0; expected a whole number from 1 to 32767"),
    ({"max_runtime": "1h"}, "E010", "is '1h'; expected a timedelta or seconds"),
    ({"provider": 5}, "E010", "is 5; expected a string"),
    ({"database": "elsewhere"}, "E010", "is 'elsewhere'; expected one of DATABASES: default"),
    ({"database": ["default"]}, "E010", "expected one of DATABASES"),
    ({"dedup": "no.such.function"}, "E010", "it cannot be imported"),
    ({"dedup": 3}, "E010", "expected a function or its dotted path"),
    ({"result_retention": -1}, "E010", "expected 0 or more, and finite"),
    ({"result_retention": float("nan")}, "E010", "expected 0 or more"),
    ({"result_retention": timedelta.max}, "E010", "expected 0 or more, and finite"),
    (["max_attempts"], "E010", "expected a dict"),
]


@pytest.mark.parametrize(("options", "number", "said"), WRONG)
def test_a_wrong_option_is_a_check_error_and_stops_an_enqueue(task_site, options, number, said):
    task_site(default={}, other={"OPTIONS": options})

    text = checked()

    assert f"django_jobqueue.{number}" in text
    assert said in text
    assert 'TASKS["other"]["OPTIONS"]' in text
    with pytest.raises(ImproperlyConfigured, match=r'TASKS\["other"\]\["OPTIONS"\]'):
        tasks.add.using(backend="other").enqueue(1)


def test_a_good_site_has_no_message(task_site):
    task_site(default={"OPTIONS": {"max_attempts": 3}}, other={})

    assert "(0 silenced)" in checked()
    assert task_backends["default"].check() == []


def test_a_backend_without_its_app_is_an_error(settings):
    settings.INSTALLED_APPS = [
        name for name in settings.INSTALLED_APPS if name != "django_jobqueue"
    ]

    (message,) = task_backends["default"].check()

    assert message.id == "django_jobqueue.E012"


def test_it_is_told_where_the_models_were_never_loaded():
    code = """
import django
from django.conf import settings
settings.configure(TASKS={"default": {"BACKEND": "django_jobqueue.backends.JobQueueBackend"}})
django.setup()
from tests.taskapp.framework import task_backends
print(*(message.id for message in task_backends["default"].check()))
"""

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.stdout.split() == ["django_jobqueue.E012"], done.stderr


def test_a_wrong_path_of_this_package_is_an_error(settings):
    settings.TASKS = {"default": {"BACKEND": "django_jobqueue.backend.JobQueueBackend"}}

    try:
        text = checked()
    except ImproperlyConfigured as error:  # Django's own check, where there is one.
        text = str(error)
    else:
        assert "django_jobqueue.E011" in text
    assert "django_jobqueue.backend" in text


@pytest.mark.django_db
def test_calls_with_one_key_are_one_job_at_a_time(task_site):
    task_site(default={"OPTIONS": {"dedup": by_first_argument}})

    first, again = tasks.add.enqueue("a", ""), tasks.add.enqueue("a", other="b")
    another, greeting, without = (
        tasks.add.enqueue("c", ""),
        tasks.greet.enqueue("a"),
        tasks.about.enqueue(),
    )

    assert again.id == first.id
    assert again == first
    assert len({first.id, another.id, greeting.id, without.id}) == 4
    assert Job.objects.count() == 4
    drain()
    assert tasks.add.enqueue("a").id != first.id


@pytest.mark.django_db
def test_a_key_that_is_no_string_is_refused(task_site):
    task_site(default={"OPTIONS": {"dedup": lambda task, args, kwargs: 7}})

    with pytest.raises(ValueError, match="dedup_key is 7; expected a string"):
        tasks.add.enqueue(1)


@pytest.mark.django_db
def test_two_aliases_stand_side_by_side(task_site):
    task_site(
        default={"QUEUES": ["default"]},
        mail={"QUEUES": ["mail"], "OPTIONS": {"dedup": by_first_argument}},
    )
    mailed = tasks.greet.using(backend="mail")

    one, two = mailed.enqueue("A"), mailed.enqueue("A")
    three = tasks.add.enqueue(1)

    assert one.id == two.id
    assert (one.backend, three.backend) == ("mail", "default")
    drain()
    assert task_backends["mail"].get_result(one.id).return_value == "Hello, A."
    assert task_backends["default"].get_result(one.id).backend == "mail"
    assert task_backends["default"].get_result(one.id).task == mailed


@pytest.mark.django_db(transaction=True)
def test_jobs_go_to_the_database_of_the_alias(task_site):
    """`other` is another connection to the same database: what it does not commit is not seen."""
    with alias("other"):
        connections["other"].connect()
        task_site(default={}, there={"OPTIONS": {"database": "other"}})
        there = tasks.add.using(backend="there")

        with transaction.atomic(using="other"):
            result = there.enqueue(1)
            assert not Job.objects.filter(pk=result.id).exists()
            assert task_backends["there"].get_result(result.id) == result
        assert Job.objects.filter(pk=result.id).exists()

        with transaction.atomic(using="other"):
            there.enqueue(2)
            transaction.set_rollback(True, using="other")

        assert [str(pk) for pk in Job.objects.values_list("pk", flat=True)] == [result.id]
        connections["other"].close()


@pytest.mark.django_db
def test_a_dedup_function_changes_no_call(task_site):
    task_site(default={"OPTIONS": {"dedup": by_what_it_takes_out}})

    result = tasks.add.enqueue(one=1, other=2)

    assert (
        result.kwargs == Job.objects.get(pk=result.id).payload["kwargs"] == {"one": 1, "other": 2}
    )


@pytest.mark.django_db
def test_a_bad_argument_is_told_before_a_key_is_made_of_it(task_site):
    task_site(default={"OPTIONS": {"dedup": by_first_argument}})

    with pytest.raises(InvalidPayload, match="NUL"):
        tasks.add.enqueue("a\0b")
    with pytest.raises(InvalidJob, match=r'The dedup function of TASKS\["default"\] made no key'):
        tasks.add.enqueue("k" * 401)
