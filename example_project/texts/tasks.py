"""Tasks, as a site writes them for any backend; a worker finds this module by its name."""

import io
from typing import Any

from django_jobqueue.backends import task_limits

from ..files import languages, texts
from .framework import task

WORDS_A_MINUTE = 200
MOST_ATTEMPTS = 3


class DictionaryUnavailable(Exception):
    """The simulated dictionary does not answer; the next attempt may succeed."""


@task(takes_context=True, queue_name="texts")
@task_limits(max_attempts=MOST_ATTEMPTS, max_runtime=60)
def describe(context: Any, text: str, outages: int = 0) -> dict[str, Any]:
    """Count lines and words, guess the language, estimate the time to read.

    So many attempts as `outages` says meet a dictionary that does not answer. Safe to repeat: it
    only reads.
    """
    if context.attempt <= outages:
        raise DictionaryUnavailable(
            f"the simulated dictionary did not answer attempt {context.attempt}"
        )
    counted = texts.statistics(io.BytesIO(text.encode()))
    return {
        "language": languages.guess(text)["language"],
        "minutes": round(counted["words"] / WORDS_A_MINUTE, 1),
        **{name: counted[name] for name in ("lines", "words", "characters", "frequent_words")},
    }
