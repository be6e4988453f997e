"""How PostgreSQL runs the statements of the package, and how many buffers each touches."""

import json
from contextlib import contextmanager
from dataclasses import dataclass

from django_jobqueue.database.prepared import PreparedCursor

TABLE = "django_jobqueue_job"
EXPLAIN = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)"


@dataclass(frozen=True)
class Plan:
    """What EXPLAIN (ANALYZE, BUFFERS) said of one statement."""

    top: dict

    @property
    def buffers(self):
        return self.top["Shared Hit Blocks"] + self.top["Shared Read Blocks"]

    @property
    def buffers_before_it_wrote(self):
        """What was read to find and to lock the rows that it changes."""
        (update,) = (node for node in nodes(self.top) if node.get("Operation") == "Update")
        return sum(n["Shared Hit Blocks"] + n["Shared Read Blocks"] for n in update["Plans"])

    @property
    def rows(self):
        return self.top["Actual Rows"]

    @property
    def accesses(self):
        """The ways in which the jobs table was read: names of indexes, or kinds of scans."""
        return {
            node.get("Index Name", node["Node Type"])
            for node in nodes(self.top)
            if node["Node Type"].endswith("Scan")
            and node["Node Type"] != "Bitmap Heap Scan"  # Its index is a node of its own.
            and is_of_jobs(node)
        }


def nodes(top):
    yield top
    for node in top.get("Plans", ()):
        yield from nodes(node)


def is_of_jobs(node):
    index = node.get("Index Name", "")
    return node.get("Relation Name") == TABLE or index.startswith(("jobqueue_job_", f"{TABLE}_"))


@contextmanager
def undone(wrapper):
    """Undo what is done inside. At a rollback that psycopg sees, it forgets what it prepared."""
    wrapper.connection.pgconn.exec_(b"BEGIN")
    try:
        yield
    finally:
        wrapper.connection.pgconn.exec_(b"ROLLBACK")


def sent_by(wrapper, act):
    """Return the statements that an act sends, each with whether it may be prepared."""
    sent = []

    def note(execute, sql, params, many, context):
        sent.append((sql, params, isinstance(context["cursor"].cursor, PreparedCursor)))
        return execute(sql, params, many, context)

    with undone(wrapper), wrapper.execute_wrapper(note):
        act()
    return sent


def explained(wrapper, statement):
    """Run one statement under EXPLAIN, planned anew."""
    sql, params, may_be_prepared = statement
    raw = wrapper.connection
    cursor = PreparedCursor(raw) if may_be_prepared else wrapper.create_cursor()
    with undone(wrapper):
        cursor.execute(f"{EXPLAIN} {sql}", params)
        return plan_of(cursor)


def plan_of(cursor):
    (answer,) = cursor.fetchone()
    (found,) = answer if isinstance(answer, list) else json.loads(answer)
    return Plan(found["Plan"])
