"""Makes the screenshots of the documentation.

`python -m tests.browser.screenshots [docs/images]` serves the scene of the tests from an SQLite
file of its own, and photographs the pages. It needs Chromium, its driver and Pillow.
"""

import os
import sys
import tempfile
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

FOLDER = Path("docs/images")
COLOURS = 256
MOST_BYTES = 150_000
OTHERS = "INSTALLED_APPS = [app for app in INSTALLED_APPS if app != 'tests.testapp']"
"""What the other tests use is not of the scene."""


class Shot(NamedTuple):
    """One picture: its name, the look, how high it is, and what leads to the page."""

    name: str
    theme: str
    size: tuple[int, int]
    steps: object

    @property
    def path(self):
        return f"{self.name}-{self.theme}.png"


def job_list(browser, queue, job):
    browser.open(f"{queue}/job/")


def detail(browser, queue, job):
    browser.open(f"{queue}/job/{job.pk}/change/")
    browser.find(".jobqueue-entry:last-child summary").click()


def confirmation(browser, queue, job):
    browser.open(f"{queue}/job/?status=failed")
    browser.find("#action-toggle").click()
    browser.choose("select[name=action]", "retry_jobs")
    browser.follow("button[name=index]")


def insights(browser, queue, job):
    browser.open(f"{queue}/insights/?window=24h")


SHOTS = (
    Shot("admin-list", "light", (1600, 900), job_list),
    Shot("admin-list", "dark", (390, 760), job_list),
    Shot("admin-job", "light", (1280, 1130), detail),
    Shot("admin-confirmation", "light", (1280, 360), confirmation),
    Shot("insights", "light", (1280, 1480), insights),
    Shot("insights", "dark", (1280, 1480), insights),
)


def main(folder):
    """Make all of them."""
    with tempfile.TemporaryDirectory() as place:
        os.environ |= {
            "TEST_DATABASE": "sqlite",
            "DATABASE_URL": f"sqlite:///{place}/scene.sqlite3",
            "DJANGO_SETTINGS_MODULE": "tests.settings",
        }
        import django

        django.setup()
        photograph(Path(place), folder)


def photograph(place, folder):
    from django.core.management import call_command
    from django.db import connections

    from tests.browser import chromium, policy, scene
    from tests.processes import Site

    call_command("migrate", verbosity=0)
    user, job = scene.operator(), scene.ordinary_day()
    connections.close_all()
    folder.mkdir(parents=True, exist_ok=True)
    site = Site(place, "JOBQUEUE = {}", OTHERS, *policy.SERVED, *policy.STRICT)
    with site.served() as address, chromium.running() as browser:
        browser.open(f"{address}/admin/")
        browser.fill("#id_username", user.username)
        browser.fill("#id_password", scene.PASSWORD)
        browser.follow("[type=submit]")
        for shot in SHOTS:
            browser.look(chromium.Look(shot.theme, *shot.size))
            shot.steps(browser, f"{address}/admin/django_jobqueue", job)
            browser.picture(folder / shot.path)
            shrink(folder / shot.path)
            print(folder / shot.path)


def shrink(path):
    """Give a picture as many colours as it needs; fail when it is too large for the pages."""
    from PIL import Image

    small = BytesIO()
    with Image.open(path) as picture:
        drawn = picture.convert("RGB")
    fewer = drawn.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    fewer.save(small, "PNG", optimize=True)
    size = small.tell()
    if size > MOST_BYTES:
        raise SystemExit(f"{path} has {size} bytes; expected at most {MOST_BYTES}.")
    path.write_bytes(small.getvalue())


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else FOLDER)
