"""A PostgreSQL server of a test's own, which it may stop and suspend, with the jobs in it."""

import contextlib

from django.db import connections
from django.db.models import Count

from django_jobqueue import JobRequest
from django_jobqueue.models import Job
from tests import databases, throwaway_postgres
from tests.processes import Site

ALIAS = "own_server"


class OwnServer:
    """The server and, over the test's own connection, its jobs."""

    def __init__(self, server):
        self._server = server
        self.url = server.url
        self.suspend = server.suspend
        self.resume = server.resume
        self.jobs = Job.objects.db_manager(ALIAS)

    def stop(self):
        connections[ALIAS].close()
        self._server.stop()

    def start(self):
        self._server.start()
        self.connect()

    def connect(self):
        connections[ALIAS].close()
        connections[ALIAS].connect()

    @contextlib.contextmanager
    def for_one_test(self):
        """Connect to an empty table; Django forbids a test what was an alias before it began."""
        settings = {"default": databases.settings_of(self.url)}
        connections.settings[ALIAS] = connections.configure_settings(settings)["default"]
        try:
            self.connect()
            with connections[ALIAS].cursor() as cursor:
                cursor.execute(f"TRUNCATE {Job._meta.db_table} CASCADE")
            yield self
        finally:
            connections[ALIAS].close()
            del connections[ALIAS]
            del connections.settings[ALIAS]

    def enqueue(self, job_type, payload, number=1):
        return self.jobs.enqueue_many([JobRequest(job_type, payload) for _ in range(number)])

    def count(self, **terms):
        return self.jobs.using(ALIAS).filter(**terms).count()

    def ends(self):
        """Return how many jobs there are of each status and number of attempts."""
        rows = self.jobs.using(ALIAS).values_list("status", "attempts").annotate(n=Count("pk"))
        return {(status, attempts): number for status, attempts, number in rows}

    def terminate_all_others(self):
        with connections[ALIAS].cursor() as cursor:
            cursor.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )


@contextlib.contextmanager
def own_server(folder):
    """Start a server with our tables; it is gone afterwards, whatever the test did to it."""
    with throwaway_postgres.controlled() as server:
        migrated = Site(folder, url=server.url).manage("migrate", "--verbosity", "0")
        assert migrated.returncode == 0, migrated.stderr
        yield OwnServer(server)
