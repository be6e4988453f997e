"""Django settings of the benchmark's own processes: the queue, one app, one database.

`DATABASE_URL` names the database, `BENCH_JOBQUEUE` holds the `JOBQUEUE` dict as JSON, and
`BENCH_DEBUG=1` switches DEBUG on.
"""

import json
import os

from tests import databases

SECRET_KEY = "only for benchmarks"
DEBUG = os.environ.get("BENCH_DEBUG") == "1"
USE_TZ = True
TIME_ZONE = "UTC"
DATABASES = {"default": databases.settings_of(os.environ["DATABASE_URL"])}
INSTALLED_APPS = ["django_jobqueue", "tests.benchmarks.app"]
JOBQUEUE = json.loads(os.environ.get("BENCH_JOBQUEUE", "{}"))
