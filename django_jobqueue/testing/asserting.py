"""Look at what was enqueued.

A job counts whatever became of it, until its row is deleted. What is seen is what the connection
of the test sees: its own transaction, and what others have committed.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Unpack

from ..managers import JobQuerySet
from ..models import Job
from .expectations import Expectation, Expected, described
from .naming import Named, type_of

MOST_LISTED = 20

JobType = Named | None


def enqueued(
    type: JobType = None,  # noqa: A002 (the contract's word)
    *,
    among: Iterable[Job] | None = None,
    **expected: Unpack[Expected],
) -> list[Job]:
    """Return the jobs that were enqueued, oldest first.

    `type`: a type, its handler or a task, None for all. `among`: jobs to choose from instead of
    all rows, such as those of `capture_enqueued`. The other words are those of `Expected`.
    """
    expectation = expectation_of(type, expected)
    return [job for job in candidates(among) if not expectation.differences(job)]


def assert_enqueued(
    type: JobType = None,  # noqa: A002
    *,
    count: int | None = None,
    among: Iterable[Job] | None = None,
    **expected: Unpack[Expected],
) -> list[Job]:
    """Return the jobs that match; AssertionError when there is none, or not `count` of them.

    The arguments are those of `enqueued`. The error shows how the nearest job differs, and what
    was enqueued instead.
    """
    __tracebackhide__ = True  # pytest shows the line of the test.
    expectation, jobs = expectation_of(type, expected), candidates(among)
    matching = [job for job in jobs if not expectation.differences(job)]
    if count is None and not matching:
        raise AssertionError(f"No job was enqueued: {expectation}.{nearest(expectation, jobs)}")
    if count is not None and len(matching) != count:
        raise AssertionError(
            f"Expected {count} jobs, found {len(matching)}: {expectation}."
            f"{nearest(expectation, jobs) if len(matching) < count else listing(matching)}"
        )
    return matching


def assert_not_enqueued(
    type: JobType = None,  # noqa: A002
    *,
    among: Iterable[Job] | None = None,
    **expected: Unpack[Expected],
) -> None:
    """Raise AssertionError, with the jobs, if any match; the arguments are those of `enqueued`."""
    __tracebackhide__ = True
    matching = enqueued(type, among=among, **expected)
    if matching:
        expectation = expectation_of(type, expected)
        raise AssertionError(f"Expected no job: {expectation}.{listing(matching)}")


@contextmanager
def capture_enqueued() -> Iterator[list[Job]]:
    """Give a list that holds, after the block, the jobs that were enqueued in it, oldest first.

    A job that was there before and answered for its dedup key is not among them.
    """
    before = set(all_jobs().values_list("pk", flat=True))
    captured: list[Job] = []
    try:
        yield captured
    finally:
        captured += [job for job in all_jobs() if job.pk not in before]


def expectation_of(job_type: JobType, expected: Expected) -> Expectation:
    """Return the expectation that the arguments of a call describe."""
    return Expectation(None if job_type is None else type_of(job_type), expected)


def candidates(among: Iterable[Job] | None) -> Sequence[Job]:
    """Return the jobs to choose from."""
    return list(all_jobs() if among is None else among)


def all_jobs() -> JobQuerySet:
    """Return every row, in the order in which they were enqueued."""
    return Job.objects.on_write_alias().order_by("pk")


def nearest(expectation: Expectation, jobs: Sequence[Job]) -> str:
    """Say how the job that differs least differs, and what there is."""
    others = [(expectation.differences(job), job) for job in jobs]
    others = [(differences, job) for differences, job in others if differences]
    if not others:
        return listing(jobs)
    # A job of the right type is nearer than any other.
    wrong_type = [job.type != expectation.type for _, job in others]
    place = min(range(len(others)), key=lambda n: (wrong_type[n], len(others[n][0])))
    differences, job = others[place]
    lines = "".join(f"\n  {line}" for line in differences)
    return f"\nThe nearest, {described(job)}, differs:{lines}{listing(jobs)}"


def listing(jobs: Sequence[Job]) -> str:
    """Return the jobs, one a line, the newest of many."""
    if not jobs:
        return "\nNothing was enqueued."
    lines = "".join(f"\n  {described(job)}" for job in jobs[-MOST_LISTED:])
    more = len(jobs) - MOST_LISTED
    return f"\nThere are:{lines}" + (f"\n  and {more} older ones" if more > 0 else "")
