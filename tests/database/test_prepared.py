"""Statements are translated once, prepared once, and sent unprepared where that cannot last."""

import contextlib
import gc
import os
import shutil
import socket
import subprocess
import tempfile
import weakref
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from django.db import OperationalError, ProgrammingError, connections, transaction
from hypothesis import given
from hypothesis import strategies as st

from django_jobqueue.database import prepared
from django_jobqueue.database.prepared import cursor_of, fetch_all, numbered
from django_jobqueue.models import Job
from django_jobqueue.states import JobStatus
from django_jobqueue.worker.planning import plan_once
from django_jobqueue.worker.queue_connection import queue_connection
from tests.aliases import alias
from tests.marks import on_postgresql
from tests.processes import Site, eventually
from tests.throwaway_postgres import free_port, privileges

pytestmark = [on_postgresql, pytest.mark.usefixtures("transactional_db")]

ANSWER = "SELECT %(answer)s::int4 + 1"
KEEPS_NONE = "going on without prepared statements"


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch):
    """No alias is known for losing what it prepared."""
    monkeypatch.setattr(prepared, "unprepared_aliases", set())


@pytest.fixture
def worker():
    with closing(queue_connection("default")) as wrapper:
        wrapper.connect()
        yield wrapper


def kept_by(wrapper):
    """The statements that the session keeps."""
    cursor = psycopg.ClientCursor(wrapper.connection)
    return [text for (text,) in cursor.execute("SELECT statement FROM pg_prepared_statements")]


def lose_everything(wrapper):
    """Do what a pooler does between two transactions: psycopg does not see it."""
    wrapper.connection.pgconn.exec_(b"DEALLOCATE ALL")


# Translating


def test_names_become_numbers_in_the_order_of_their_first_use():
    assert numbered("SELECT %(b)s, %(a)s, %(b)s::text[]") == (
        b"SELECT $1, $2, $1::text[]",
        ("b", "a"),
    )


def test_a_doubled_percent_sign_is_one():
    assert numbered("SELECT 7 %% %(n)s, 'a%%', '%%(n)s'") == (
        b"SELECT 7 % $1, 'a%', '%(n)s'",
        ("n",),
    )


def test_a_statement_without_parameters_stays():
    assert numbered("SELECT 1") == (b"SELECT 1", ())


def test_a_statement_is_translated_once():
    assert numbered(ANSWER) is numbered(ANSWER)


PARTS = st.lists(st.sampled_from(["%(a)s", "%(b)s", "%(c)s", "%%", "'x'", " , ", "$", "é"]))


@given(parts=PARTS)
def test_the_translation_is_psycopgs_own(parts):
    text = "%(a)s " + "".join(parts)  # Without parameters psycopg leaves a text as it is.
    values = {"a": 1, "b": 2, "c": 3}
    theirs = psycopg._queries.PostgresQuery(psycopg.adapt.Transformer())
    theirs.convert(text, values)
    ours, names = numbered(text)

    assert ours == theirs.query
    assert list(names) == list(theirs._order or [])


# Sending


def test_a_worker_prepares_a_statement_at_once_and_only_once(worker):
    for number in range(3):
        assert fetch_all(worker, ANSWER, {"answer": number}) == [(number + 1,)]

    assert kept_by(worker) == ["SELECT $1::int4 + 1"]


def test_a_site_prepares_nothing():
    wrapper = connections["default"]
    for number in range(10):
        assert fetch_all(wrapper, ANSWER, {"answer": number}) == [(number + 1,)]

    assert kept_by(wrapper) == []


def test_a_connection_has_one_cursor_and_a_new_one_has_another(worker):
    first = cursor_of(worker.connection)
    fetch_all(worker, ANSWER, {"answer": 1})
    assert cursor_of(worker.connection) is first

    worker.close()
    worker.connect()
    assert cursor_of(worker.connection) is not first


def test_a_statement_that_failed_leaves_the_cursor_usable(worker):
    with pytest.raises(ProgrammingError):
        fetch_all(worker, "SELECT %(answer)s::int4 FROM nowhere", {"answer": 1})

    assert fetch_all(worker, ANSWER, {"answer": 1}) == [(2,)]


def test_a_cursor_goes_with_its_connection(worker):
    """A process that opens a connection for every request must not keep them all."""
    fetch_all(worker, ANSWER, {"answer": 1})
    raw = weakref.ref(worker.connection)
    worker.close()
    worker.connect()
    gc.collect()

    assert raw() is None


def test_a_connection_is_opened_where_there_is_none(worker):
    worker.close()

    assert fetch_all(worker, ANSWER, {"answer": 1}) == [(2,)]


def test_execute_wrappers_see_the_statements(worker):
    seen = []

    def note(execute, sql, params, many, context):
        seen.append((sql, params))
        return execute(sql, params, many, context)

    with worker.execute_wrapper(note):
        fetch_all(worker, ANSWER, {"answer": 1})

    assert seen == [(ANSWER, {"answer": 1})]


# Losing


def test_a_session_that_loses_its_statements_goes_on_without(worker, caplog):
    fetch_all(worker, ANSWER, {"answer": 1})
    lose_everything(worker)

    assert [fetch_all(worker, ANSWER, {"answer": n}) for n in range(5)] == [
        [(n + 1,)] for n in range(5)
    ]
    assert worker.connection.prepare_threshold is None
    assert kept_by(worker) == []
    assert caplog.text.count(KEEPS_NONE) == 1


def test_a_statement_that_is_there_already_counts_as_a_loss(worker, caplog):
    """The session that a pooler gives us has somebody else's statement of that name."""
    worker.connection.pgconn.exec_(b"PREPARE _pg3_0 AS SELECT 'another'")

    assert fetch_all(worker, ANSWER, {"answer": 1}) == [(2,)]
    assert worker.connection.prepare_threshold is None
    assert caplog.text.count(KEEPS_NONE) == 1


def test_it_is_said_once_for_all_sessions_of_an_alias(worker, caplog):
    with closing(queue_connection("default")) as other:
        other.connect()
        for wrapper in (worker, other):
            fetch_all(wrapper, ANSWER, {"answer": 1})
            lose_everything(wrapper)
            assert fetch_all(wrapper, ANSWER, {"answer": 1}) == [(2,)]

    assert caplog.text.count(KEEPS_NONE) == 1


def test_sessions_opened_later_prepare_nothing(worker):
    prepared.stop_preparing(worker, "loses them")
    worker.close()
    worker.connect()
    for _ in range(10):
        fetch_all(worker, ANSWER, {"answer": 1})

    assert kept_by(worker) == []


def test_inside_a_transaction_the_loss_is_the_callers(worker, monkeypatch):
    """The transaction is broken: only the caller can begin it again."""
    fetch_all(worker, ANSWER, {"answer": 1})
    lose_everything(worker)
    monkeypatch.setitem(vars(connections._connections), "default", worker)
    with pytest.raises(ProgrammingError), transaction.atomic():
        fetch_all(worker, ANSWER, {"answer": 1})

    assert fetch_all(worker, ANSWER, {"answer": 1}) == [(2,)]


def test_another_error_stops_no_preparing(worker):
    with pytest.raises(ProgrammingError):
        fetch_all(worker, "SELECT nothing", {})

    assert worker.connection.prepare_threshold == 0
    assert prepared.unprepared_aliases == set()


# Options


def planned(refusal=None):
    """A wrapper that is to plan once, on a server that refuses such options, if it is to."""
    wrapper = connections.create_connection("default")
    connect = wrapper.get_new_connection

    def get_new_connection(parameters):
        if refusal and "plan_cache_mode" in parameters.get("options", ""):
            raise psycopg.OperationalError(refusal)
        return connect(parameters)

    wrapper.get_new_connection = get_new_connection
    plan_once(wrapper)
    return wrapper


def option(wrapper, name):
    return psycopg.ClientCursor(wrapper.connection).execute(f"SHOW {name}").fetchone()[0]


def test_a_worker_plans_for_any_values_and_over_indexes(worker):
    assert option(worker, "plan_cache_mode") == "force_generic_plan"
    assert option(worker, "enable_seqscan") == "off"
    assert option(worker, "jit") == "off"


def test_where_options_are_refused_there_are_none(caplog):
    with closing(planned('unsupported startup parameter: "options"')) as wrapper:
        wrapper.connect()

        assert option(wrapper, "plan_cache_mode") == "auto"
        for _ in range(10):
            assert fetch_all(wrapper, ANSWER, {"answer": 1}) == [(2,)]
        assert kept_by(wrapper) == []
    assert caplog.text.count(KEEPS_NONE) == 1


def test_another_refusal_is_one():
    with (
        closing(planned("the database system is starting up")) as wrapper,
        pytest.raises(OperationalError, match="starting up"),
    ):
        wrapper.ensure_connection()
    assert prepared.unprepared_aliases == set()


def test_a_sites_own_threshold_stays():
    with (
        alias("chosen", OPTIONS={"prepare_threshold": 3}) as using,
        closing(queue_connection(using)) as wrapper,
    ):
        wrapper.connect()

        assert wrapper.connection.prepare_threshold == 3
        assert option(wrapper, "plan_cache_mode") == "auto"


def test_a_sites_own_options_stay_beside_ours():
    with (
        alias("chosen", OPTIONS={"options": "-c work_mem=5MB"}) as using,
        closing(queue_connection(using)) as wrapper,
    ):
        wrapper.connect()

        assert option(wrapper, "work_mem") == "5MB"
        assert option(wrapper, "plan_cache_mode") == "force_generic_plan"


# Behind PgBouncer

PGBOUNCER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")
behind_pgbouncer = pytest.mark.skipif(
    PGBOUNCER is None, reason="there is no program `pgbouncer` on this machine"
)
CONFIGURATION = """
[databases]
{name} = {server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own_port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
server_reset_query = DEALLOCATE ALL
server_reset_query_always = 1
{more}
"""


@pytest.fixture
def pgbouncer():
    """Start PgBouncer in transaction mode; return a URL of the test's database through it."""
    with contextlib.ExitStack() as open_ones:
        yield lambda *more: open_ones.enter_context(running_pgbouncer(more))


@contextlib.contextmanager
def running_pgbouncer(more):
    settings = connections["default"].settings_dict
    names = {"host": "HOST", "port": "PORT", "user": "USER", "password": "PASSWORD"}
    server = {key: settings[name] for key, name in names.items()}
    port = free_port()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file, log = folder / "pgbouncer.ini", folder / "log"
        file.write_text(
            CONFIGURATION.format(
                name=settings["NAME"],
                server=" ".join(f"{key}={value}" for key, value in server.items() if value),
                own_port=port,
                more="\n".join(more),
            )
        )
        with (
            log.open("w") as errors,
            subprocess.Popen(
                [PGBOUNCER, os.fspath(file)], stdout=errors, stderr=errors, **privileges(folder)
            ) as process,
        ):
            try:
                eventually(lambda: listens(port) or process.poll() is not None, "it did not start")
                assert process.poll() is None, log.read_text()
                yield f"postgresql://{settings['USER']}@127.0.0.1:{port}/{settings['NAME']}"
            finally:
                process.kill()


def listens(port):
    with socket.socket() as door:
        return door.connect_ex(("127.0.0.1", port)) == 0


REFUSES_OPTIONS = ()
TAKES_OPTIONS = ("ignore_startup_parameters = options",)


@behind_pgbouncer
@pytest.mark.parametrize("more", [REFUSES_OPTIONS, TAKES_OPTIONS], ids=["refuses", "ignores"])
def test_a_worker_behind_pgbouncer_says_so_once_and_does_its_work(tmp_path, pgbouncer, more):
    jobs = [Job.objects.enqueue("test.echo", {"n": n}) for n in range(50)]
    site = Site(tmp_path, "JOBQUEUE = {'POLL_INTERVAL': 0.05}", url=pgbouncer(*more))

    with site.worker("--concurrency=4", "--drain") as worker:
        code = worker.exit_code()

    assert (code, worker.errors.count(KEEPS_NONE)) == (0, 1), worker.errors
    assert Job.objects.filter(status=JobStatus.SUCCEEDED, attempts=1).count() == len(jobs)
