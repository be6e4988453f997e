"""How much write-ahead log a job makes."""

import psycopg

from tests.benchmarks import rows
from tests.benchmarks.processes import pause
from tests.benchmarks.results import Chart, Reach, Series, Table

TITLE = "Write-ahead log"
EXPLANATION = """\
The log of claiming and settling no-op jobs with a worker of 16 slots: the records of this database
and of its transactions, read with `pg_walinspect`, without full-page images, each rounded up to
the eight bytes that it takes. The rows are in the table before, so an enqueue is no part of it. A
realistic job has a subject, a dedup key, a trace context and a payload of 1 kB.\
"""
MOST_BYTES = 1_000
IMAGES = "not counted above; each replaces a record of a change, so there should be hardly any"

# A record belongs to us if it touches a page of this database or is of a transaction that does.
RECORDS = """
WITH record AS (
    SELECT xid, record_length - fpi_length AS length, fpi_length, resource_manager,
        block_ref LIKE '%%/' || (
            SELECT oid FROM pg_database WHERE datname = current_database()
        ) || '/%%' AS here
    FROM pg_get_wal_records_info(%(begin)s, %(end)s)
),
ours AS (
    SELECT * FROM record
    WHERE here OR xid::text <> '0' AND xid IN (SELECT xid FROM record WHERE here)
)
SELECT
    sum((length + 7) / 8 * 8),
    count(*),
    sum(fpi_length),
    count(*) FILTER (WHERE resource_manager = 'Transaction')
FROM ours
"""


def run(bench):
    kinds = {"minimal": False, "realistic": True}
    found = {name: [] for name in kinds}
    try:
        for name, realistic in kinds.items():
            for number in range(bench.runs):
                bench.log(f"wal: {name}, run {number + 1}")
                found[name].append(one_run(bench, realistic=realistic))
    except psycopg.Error as error:
        return unmeasured(error)
    series = []
    for name, runs in found.items():
        size, records, images, commits = (list(column) for column in zip(*runs, strict=True))
        series += [
            Series(f"{name} job", "bytes", size),
            Series(f"{name} job: records", "records", records),
            Series(f"{name} job: commits", "commits", commits),
            Series(f"{name} job: full-page images", "bytes", images, IMAGES),
        ]
    sizes = [one for one in series if one.unit == "bytes" and one.name.endswith(" job")]
    chart = Chart(
        "wal",
        "Write-ahead log of a claim and a settle",
        "bars",
        [one.name for one in sizes],
        "",
        "bytes a job",
        {"median": [one.median for one in sizes]},
        {"median": [(one.low, one.high) for one in sizes]},
    )
    size = series[0].median
    reach = Reach(
        f"≤ {MOST_BYTES:,} bytes for a minimal job", size <= MOST_BYTES, f"{size:,.0f} bytes"
    )
    return Table(TITLE, EXPLANATION, series, [reach], [chart])


def one_run(bench, *, realistic):
    """Return bytes, records, bytes of images and commits, each for one job."""
    count = bench.scale(10_000, 1_000)
    with bench.database("wal") as database, database.connect() as connection:
        connection.execute("CREATE EXTENSION pg_walinspect")
        # The first change of a page after a checkpoint logs an image in place of the change, so
        # let there be one now and not in the middle.
        connection.execute("CHECKPOINT")
        rows.fill(connection, rows.Rows(count, realistic=realistic))
        rows.vacuum(connection)
        with bench.worker(database, settings={"WORKER_MODE": "off"}):
            pass  # What a first start writes is there now.
        # Keeps the log as long as this session lasts, whatever checkpoints come.
        connection.execute(
            "SELECT pg_create_physical_replication_slot(%s, true, true)", (database.name[:63],)
        )
        begin = place(connection)
        with bench.worker(database) as worker:
            while rows.exists(connection, "status IN ('pending', 'running')"):
                worker.check()
                pause(0.1)
            end = place(connection)
        figures = connection.execute(RECORDS, {"begin": begin, "end": end}).fetchone()
    return [float(figure) / count for figure in figures]


def place(connection):
    """Return where the log ends that has reached the disk, once all of it has."""
    # A commit that waits for its own record waits for everything before it.
    connection.execute("SELECT pg_logical_emit_message(true, 'benchmark', '')")
    return connection.execute("SELECT pg_current_wal_flush_lsn()").fetchone()[0]


def unmeasured(error):
    reason = str(error).strip().splitlines()[0]
    series = [Series("minimal job", "bytes", [], f"not measured: {reason}")]
    reach = Reach(f"≤ {MOST_BYTES:,} bytes for a minimal job", None, "not measured")
    return Table(TITLE, EXPLANATION, series, [reach])
