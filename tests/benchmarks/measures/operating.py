"""How long the admin's pages take over a full table."""

from tests.benchmarks import programs
from tests.benchmarks.bench import ADMIN_SITE, admin_schema
from tests.benchmarks.results import Reach, Series, Table

TITLE = "The admin over a full table"
EXPLANATION = """\
1,000,000 jobs: 98 of 100 ended over the last 30 days, one of a hundred of them failed; the others
wait or run. Each page is opened by Django's test client, as somebody with every permission: what it
takes in the database, all queries of the request together, and for the insights the whole request
with the rendering of the page.\
"""
MOST_QUERIES = 8
MOST_LIST_MS = 300
MOST_INSIGHTS_MS = 1_500
ENTRY = "insights, 7 days"


def run(bench):
    with bench.database("operating", schema=admin_schema) as database:
        bench.log("operating")
        found = programs.answer_of(
            bench,
            database,
            "pages",
            module=ADMIN_SITE,
            rows=bench.scale(1_000_000, 20_000),
            times=bench.runs,
        )
    series = []
    for name, figures in found.items():
        kind = "total" if name.startswith("insights") else "database"
        queries = max(figures["queries"])
        series.append(Series(f"{name} ({queries} queries)", "ms", figures[kind]))
    lists = {name: figures for name, figures in found.items() if name.startswith("list")}
    slowest = max(lists, key=lambda name: min(lists[name]["database"]))
    queries = max(lists["list"]["queries"])
    entry = next(one for one in series if one.name.startswith(ENTRY))
    return Table(
        TITLE,
        EXPLANATION,
        series,
        [
            Reach(
                f"the list opens in ≤ {MOST_QUERIES} queries",
                queries <= MOST_QUERIES,
                f"{queries} queries",
            ),
            Reach(
                f"every list: ≤ {MOST_LIST_MS} ms in the database",
                min(lists[slowest]["database"]) <= MOST_LIST_MS,
                f"{min(lists[slowest]['database']):,.0f} ms, {slowest}",
            ),
            Reach(
                f"the insights page: ≤ {MOST_INSIGHTS_MS:,} ms",
                entry.median <= MOST_INSIGHTS_MS,
                f"{entry.median:,.0f} ms",
            ),
        ],
    )
