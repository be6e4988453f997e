"""The worker's own connections: patient with slow statements, not with silent peers."""

import socket
import time
from contextlib import closing

import pytest
from django.db import OperationalError, connections, transaction

from django_jobqueue.models import Job
from django_jobqueue.worker.queue_connection import patience_seconds, queue_connection
from tests.aliases import alias
from tests.managers.rows import Aside, backend_that_waits
from tests.marks import on_postgresql, on_sqlite
from tests.proxy import proxied

pytestmark = pytest.mark.usefixtures("transactional_db")

PARAMETERS = {
    "connect_timeout",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_count",
    "tcp_user_timeout",
}


@pytest.fixture
def opened(transactional_db):
    """Open queue connections, by default on the test's database."""
    made = []

    def make(using="default"):
        made.append(queue_connection(using))
        made[-1].connect()
        return made[-1]

    yield make
    for connection in made:
        connection.close()


def parameters(connection):
    """Return what libpq itself uses, as text."""
    info = connection.connection.info
    return {key: value for key, value in info.get_parameters().items() if key in PARAMETERS}


@on_postgresql
@pytest.mark.parametrize(
    ("cap", "patience"), [(90, 30), (15, 5), (7.5, 2.5), (None, 30), (900, 30)]
)
def test_a_dead_peer_is_noticed_within_a_third_of_the_lease_cap(opened, jobqueue, cap, patience):
    jobqueue(LEASE_CAP=cap)

    used = {key: int(value) for key, value in parameters(opened()).items()}

    assert patience_seconds() == patience
    assert used["tcp_user_timeout"] == patience * 1000
    assert used["connect_timeout"] == int(patience)
    assert used["keepalives"] == 1
    probing = used["keepalives_interval"] * used["keepalives_count"]
    assert used["keepalives_idle"] + probing <= patience or patience < 4


@on_postgresql
def test_the_system_knows_of_it(opened, jobqueue):
    jobqueue(LEASE_CAP=30)

    with socket.socket(fileno=socket.dup(opened().connection.pgconn.socket)) as door:
        assert door.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert door.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 10_000


@on_postgresql
def test_the_sites_own_options_stay_and_its_pool_goes(opened):
    options = {"connect_timeout": 7, "application_name": "site", "pool": {"max_size": 2}}
    with alias("with_options", OPTIONS=options, CONN_MAX_AGE=0) as using:
        connection = opened(using)

        assert parameters(connection)["connect_timeout"] == "7"
        assert connection.connection.info.get_parameters()["application_name"] == "site"
        assert "pool" not in connection.settings_dict["OPTIONS"]
        assert connection.settings_dict["CONN_MAX_AGE"] is None
        assert connections.settings[using]["OPTIONS"] == options


@on_sqlite
def test_another_database_is_taken_as_it_is(opened):
    assert opened().settings_dict == connections["default"].settings_dict


@on_postgresql
def test_a_session_whose_answers_do_not_arrive_is_given_up(opened, jobqueue):
    jobqueue(LEASE_CAP=9)
    with proxied() as proxy:
        connection = opened()
        proxy.freeze()
        before = time.monotonic()
        with (
            pytest.raises(OperationalError, match="the server was silent for"),
            connection.cursor() as cursor,
        ):
            cursor.execute("SELECT 1")
        assert time.monotonic() - before < patience_seconds()


@on_postgresql
def test_a_commit_that_is_not_answered_is_given_up(opened, jobqueue):
    jobqueue(LEASE_CAP=9)
    with proxied() as proxy:
        connection = opened()
        connection.set_autocommit(autocommit=False)
        connection.cursor().execute("SELECT 1")
        proxy.freeze()
        with pytest.raises(OperationalError, match="the server was silent for"):
            connection.commit()


@on_postgresql
def test_a_session_that_nobody_can_be_asked_about_is_given_up(opened, jobqueue):
    """The peer is silent, and so is everything that connects to it."""
    jobqueue(LEASE_CAP=9)
    with proxied() as proxy:
        connection = opened()
        proxy.refusing = True
        proxy.freeze()
        with (
            pytest.raises(OperationalError, match="the server was silent for"),
            connection.cursor() as cursor,
        ):
            cursor.execute("SELECT 1")


@on_postgresql
def test_a_slow_statement_is_waited_for(opened, jobqueue):
    """Silence alone says nothing: the server is at work, or waits for a lock."""
    jobqueue(LEASE_CAP=1.5)
    connection = opened()

    with connection.cursor() as cursor:
        cursor.execute("SELECT 'slow' FROM pg_sleep(2)")
        assert cursor.fetchone() == ("slow",)


@on_postgresql
def test_a_statement_that_waits_for_a_lock_is_waited_for(jobqueue):
    jobqueue(LEASE_CAP=1.5)
    job = Job.objects.enqueue("test.none")

    def change():
        with closing(queue_connection("default")) as connection, connection.cursor() as cursor:
            cursor.execute(f"UPDATE {Job._meta.db_table} SET reason = 'changed'")

    with transaction.atomic():
        Job.objects.select_for_update().get(pk=job.pk)
        aside = Aside(change)
        backend_that_waits()
        aside.join(2)
        assert aside.is_alive()
    aside.answer()

    job.refresh_from_db()
    assert job.reason == "changed"
