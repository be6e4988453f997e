"""What the benchmark's measures of our own worker make of what was written down."""

from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connection

from django_jobqueue.models import Job
from django_jobqueue.states import JobStatus
from tests.benchmarks import extras, percentiles, rows
from tests.benchmarks.measures import late_rows
from tests.marks import on_postgresql

DAY = timedelta(days=1)


class TestPercentiles:
    @pytest.mark.parametrize(
        ("percent", "value"), [(0, 1), (1, 1), (50, 50), (95, 95), (99, 99), (100, 100)]
    )
    def test_are_values_that_were_measured(self, percent, value):
        assert percentiles.of(range(100, 0, -1), percent) == value

    def test_of_one_value_are_that_value(self):
        assert percentiles.of([7.0], 95) == 7.0


class TestClaimTimes:
    def test_are_of_claims_that_brought_jobs_in_the_time_asked_for(self, tmp_path):
        (tmp_path / "1.claims").write_text("10.0 1.5 16\n11.0 9.0 0\n12.0 2.5 1\n13.0 4")
        (tmp_path / "2.claims").write_text("20.0 3.5 4\n")

        assert sorted(extras.claim_times(tmp_path)) == [1.5, 2.5, 3.5]
        assert extras.claim_times(tmp_path, after=11.5, before=19.0) == [2.5]


class TestLateRows:
    def test_are_told_from_the_stream_by_their_mark_and_their_ids(self):
        made_ms = 1_700_000_000_000
        now = UUID(int=made_ms << 80)
        long_ago = UUID(int=(made_ms - 600_000) << 80)
        stamps = [
            f"1700000000.250 1700000000.000 {now}",
            f"1700000001.250 1700000001.000 {now}",
            f"1700000000.500 1700000000.000 {long_ago}",
            f"1700000012.000 late {now}",
        ]

        waits, share = late_rows.sorted_out(stamps, committed_at=1_700_000_011.0)

        assert waits == {"stream": [0.25, 0.25], "skewed": [0.5], "late": [1.0]}
        assert share * late_rows.RATE == 1.0


@on_postgresql
@pytest.mark.django_db
class TestRows:
    def fill(self, made):
        connection.ensure_connection()
        rows.fill(connection.connection, made)
        return list(Job.objects.order_by("id"))

    def test_wait_in_the_order_they_were_made(self):
        jobs = self.fill(rows.Rows(10, types=("a", "b"), queues=("x", "y")))

        assert [job.created_at for job in jobs] == sorted(job.created_at for job in jobs)
        assert {job.id.version for job in jobs} == {7}
        assert {(job.type, job.queue) for job in jobs} == {
            (job_type, queue) for job_type in "ab" for queue in "xy"
        }
        assert Job.objects.ready().count() == 10

    def test_are_scheduled_from_when_they_were_made(self):
        jobs = self.fill(rows.Rows(3, due_in=DAY))

        assert [job.scheduled_for - job.created_at for job in jobs] == [DAY] * 3
        assert Job.objects.ready().count() == 0

    def test_are_finished_long_ago(self):
        jobs = self.fill(rows.Rows(3, finished=True, age=DAY))

        assert {job.status for job in jobs} == {JobStatus.SUCCEEDED}
        assert all(job.finished_at < Job.objects.now() - DAY for job in jobs)

    def test_that_are_realistic_have_all_that_a_site_gives_them(self):
        jobs = self.fill(rows.Rows(3, realistic=True))

        assert len({job.dedup_key for job in jobs}) == 3
        assert {job.subject_type for job in jobs} == {"report"}
        assert {len(job.payload["text"]) for job in jobs} == {1_000}
        assert {len(job.trace_context) for job in jobs} == {55}
