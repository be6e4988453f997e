"""The screenshots in the documentation. Whether they are new is for people to see."""

import re

import pytest

from tests.browser.screenshots import FOLDER, MOST_BYTES, SHOTS
from tests.pages import PAGES, ROOT

SHOWN = re.compile(r"!\[(?P<alt>[^\]]+)\]\((?P<path>images/[^)]+\.png)\)")
SIZED = re.compile(r"^```\{image\} (?P<path>images/\S+\.png)\n:alt: (?P<alt>.+)$", re.MULTILINE)


@pytest.mark.parametrize("shot", SHOTS, ids=lambda shot: shot.path)
def test_a_screenshot_is_small_and_shown_with_words(shot):
    texts = [page.read_text() for page in PAGES]
    words = {
        found["path"]: found["alt"]
        for text in texts
        for pattern in (SHOWN, SIZED)
        for found in pattern.finditer(text)
    }

    assert words.get(f"{FOLDER.name}/{shot.path}"), words
    assert 0 < (ROOT / FOLDER / shot.path).stat().st_size <= MOST_BYTES
