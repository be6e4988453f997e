"""The admin's pages over a full table, opened one after the other as a person with all permissions.

The process has the settings of the tests, which have an admin. The caches of the server are warm:
each page is opened once before.
"""

import time

from tests.benchmarks import programs

LIST = "/admin/django_jobqueue/job/"
INSIGHTS = "/admin/django_jobqueue/insights/"
PAGES = {
    "list": LIST,
    "list, page 2": f"{LIST}?p=2",
    "list, page 100": f"{LIST}?p=100",
    "list of pending": f"{LIST}?status=pending",
    "list of failed": f"{LIST}?status=failed",
    "list of stuck": f"{LIST}?status=stuck",
    "list of the last 24 hours": f"{LIST}?activity=day",
    "list of before 7 days": f"{LIST}?activity=before-week",
    "list of one type of fifty": f"{LIST}?type=app.type1",
    "list of a rare queue, failed": f"{LIST}?queue=rare&status=failed",
    "search for a subject": f"{LIST}?q=kind4:1",
    "insights, 24 hours": f"{INSIGHTS}?window=24h",
    "insights, 7 days": INSIGHTS,
    "insights, 90 days": f"{INSIGHTS}?window=90d",
}


def pages(rows, times):
    """Fill the table and open each page; say for each how long it took and how many queries.

    `total` is the whole request, `database` the part of it in the database: both in milliseconds.
    """
    from django.conf import settings
    from django.contrib.auth.models import User
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    from tests.admin import crowd

    settings.ALLOWED_HOSTS = ["testserver"]
    crowd.fill(rows)
    client = Client()
    client.force_login(User.objects.create_superuser("operator"))
    found = {}
    for name, url in PAGES.items():
        found[name] = {"total": [], "database": [], "queries": []}
        for number in range(times + 1):
            begin = time.perf_counter()
            with CaptureQueriesContext(connection) as queries:
                response = client.get(url)
            total = (time.perf_counter() - begin) * 1000
            assert response.status_code == 200, f"{url} answers {response.status_code}"
            if number:
                found[name]["total"].append(total)
                database = sum(float(query["time"]) for query in queries) * 1000
                found[name]["database"].append(database)
                found[name]["queries"].append(len(queries))
    return found


if __name__ == "__main__":
    programs.main(pages)
