"""The page on metrics, against the instruments that the real SDK sees."""

import pytest
from opentelemetry.sdk.metrics.export import Histogram, Sum

from django_jobqueue import metrics
from django_jobqueue.prometheus import FAMILIES, MOST_PLACES
from tests.pages import ROOT, table_rows

PAGE = ROOT / "docs" / "metrics.md"
WORDS = {
    "job.type": "type",
    "messaging.destination.name": "queue",
    "job.outcome": "outcome",
    "jobqueue.operation": "operation",
}


class APool:
    concurrency = 2
    busy = 1
    abandoned = 0


@pytest.fixture
def everything(reader):
    """Each instrument with one measurement."""
    metrics.sent({("a", "b"): 1})
    metrics.started("a", "b", 1.0)
    metrics.settled("a", "b", "failed", 1.0)
    metrics.claim_lost("a", "b")
    metrics.exchanged("claim", 0.1)
    pool = APool()
    metrics.watch(pool)
    found = reader.get_metrics_data()
    metrics.unwatch(pool)
    return found.resource_metrics[0].scope_metrics[0].metrics


def kind_of(metric):
    if isinstance(metric.data, Histogram):
        return "histogram"
    assert isinstance(metric.data, Sum)
    return "counter" if metric.data.is_monotonic else "observable up-down counter"


def test_the_table_lists_every_instrument(everything):
    documented = {tuple(cell.strip("`") for cell in row) for row in table_rows(PAGE, "Instrument")}

    measured = set()
    for metric in everything:
        (point,) = metric.data.data_points
        words = ", ".join(word for name, word in WORDS.items() if name in point.attributes)
        assert point.attributes.keys() <= {*WORDS, "messaging.system"}
        measured.add((metric.name, kind_of(metric), metric.unit, metric.description, words))

    assert measured == documented


def test_the_table_lists_every_name_for_prometheus():
    documented = [tuple(row) for row in table_rows(PAGE, "Name")]

    assert documented == [
        (name, text, ", ".join(labels)) for name, (text, labels) in FAMILIES.items()
    ]


def test_the_bounds_are_those_of_the_code():
    words = " ".join(PAGE.read_text().split())

    assert f"Beyond {metrics.MOST_SERIES:,} combinations" in words
    assert f"Beyond {MOST_PLACES} combinations" in words
