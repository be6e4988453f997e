"""The ids of jobs, ordered by time."""

import time
from uuid import UUID

from django_jobqueue.ids import last_id_until, uuid7


def test_an_id_lies_between_the_bounds_of_the_moments_around_it():
    before = time.time() - 0.001
    made = uuid7()
    after = time.time()

    assert last_id_until(before) < made <= last_id_until(after)


def test_the_bound_of_a_moment_is_its_millisecond_filled_up():
    assert last_id_until(1.5) == UUID("00000000-05dc-ffff-ffff-ffffffffffff")
