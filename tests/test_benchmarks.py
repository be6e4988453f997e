"""What the benchmark makes of its numbers. It measures nothing here."""

import json
from uuid import UUID

import pytest

from tests.benchmarks import measures, report, results, stamps
from tests.benchmarks.measures import throughput
from tests.benchmarks.results import Chart, Reach, Series, Table
from tests.benchmarks.systems import bare, celery_redis, contenders, jobqueue, pgqueuer_batch
from tests.benchmarks.systems.contender import Contender

ABOUT = {
    "date": "2026-01-02 03:04 UTC",
    "commit": "abc",
    "quick": False,
    "runs": 3,
    "machine": {"processor": "P", "cores": 2, "memory": "8.0 GiB", "system": "Linux"},
    "server": {"version": "PostgreSQL 15", "fsync": "on", "synchronous_commit": "on"},
    "redis": "no Redis server answers",
    "versions": {"Python": "3.13"},
}
TABLE = Table(
    title="Throughput",
    explanation="Jobs a second.",
    series=[
        Series("ours", "jobs/s", [3000.0, 1000.0, 2000.0], "default settings"),
        Series("theirs", "jobs/s", [500.0]),
        Series("absent", "jobs/s", [], "not measured: no server | here"),
    ],
    reaches=[
        Reach("at least 3 times theirs", met=True, measured="4.00"),
        Reach("at least 5 times theirs", met=False, measured="4.00"),
        Reach("at least absent", met=None, measured="not measured"),
    ],
    charts=[Chart("a-chart", "A chart", "bars", ["ours"], "", "jobs/s", {"median": [2000.0]})],
    base="ours",
)


def line_with(text, words):
    [line] = [line for line in text.splitlines() if words in line and line.startswith("|")]
    return line


def every_second(count):
    return [float(second) for second in range(count)]


class TestSeries:
    def test_knows_its_median_and_its_ends(self):
        series = Series("a", "s", [5.0, 1.0, 2.0, 4.0])

        assert (series.median, series.low, series.high) == (3.0, 1.0, 5.0)


class TestRate:
    def test_is_the_jobs_between_stamps_by_the_time_between_them(self):
        assert stamps.rate(every_second(100), every=7, total=700) == 7.0

    def test_leaves_the_start_and_the_end_out(self):
        slow_ends = [-1000.0, *every_second(100)[1:-1], 5000.0]

        assert stamps.rate(slow_ends, every=1, total=100) == 1.0

    def test_does_not_need_the_last_stamps(self):
        assert stamps.rate(every_second(95), every=2, total=200) == 2.0

    @pytest.mark.parametrize("count", [0, 1, 50])
    def test_says_when_stamps_are_missing(self, count):
        with pytest.raises(ValueError, match="too few"):
            stamps.rate(every_second(count), every=1, total=100)


class TestStamps:
    def test_of_all_processes_are_merged_and_a_half_line_waits(self, tmp_path):
        (tmp_path / "1.stamps").write_text("3.5 10\n9.5 20\n11.")
        (tmp_path / "2.stamps").write_text("4.5 10\n")

        assert stamps.times_of(tmp_path) == [3.5, 4.5, 9.5]

    def test_are_written_whole_to_a_file_of_the_process(self, tmp_path, monkeypatch):
        monkeypatch.setenv(stamps.FOLDER, str(tmp_path))
        monkeypatch.setattr(stamps, "_file", {})

        stamps.write("1.0 a")
        stamps.write("2.0 b")

        assert stamps.lines_of(tmp_path) == ["1.0 a", "2.0 b"]

    def test_without_a_folder_are_not_written(self, monkeypatch):
        monkeypatch.delenv(stamps.FOLDER, raising=False)

        stamps.write("1.0 a")


class TestReport:
    def test_shows_medians_and_ends_and_ratios(self):
        text = report.text(ABOUT, [TABLE])

        assert "| ours | 2,000 | 1,000 to 3,000 | jobs/s | 3 | 1.00 |" in text
        assert "| theirs | 500 |  | jobs/s | 1 | 4.00 |" in text

    def test_says_what_was_not_measured_and_why(self):
        line = line_with(report.text(ABOUT, [TABLE]), "| absent |")

        assert line.endswith("not measured: no server \\| here |")

    def test_judges_each_reach_and_counts_them(self):
        text = report.text(ABOUT, [TABLE])

        assert line_with(text, "3 times").endswith("| met |")
        assert line_with(text, "5 times").endswith("| **missed** |")
        assert line_with(text, "at least absent").endswith("| not judged |")
        assert "Reaches: 1 met, 1 missed, 1 not judged." in text

    def test_says_what_it_was_measured_with(self):
        text = report.text(ABOUT, [TABLE])

        assert "PostgreSQL 15: fsync = on" in text
        assert "P, 2 cores, 8.0 GiB memory" in text
        assert "of 3 runs" in text

    def test_shows_the_charts(self):
        assert "![A chart](a-chart.svg)" in report.text(ABOUT, [TABLE])

    def test_of_a_quick_run_warns(self):
        assert "only show that the benchmark works" in report.text(ABOUT | {"quick": True}, [])

    def test_of_a_server_without_fsync_warns(self):
        server = ABOUT["server"] | {"fsync": "off"}

        assert "does not wait for its disk" in report.text(ABOUT | {"server": server}, [])
        assert "does not wait for its disk" not in report.text(ABOUT, [])

    def test_shows_a_measure_that_failed(self):
        failed = Table("Memory", "", [], [], errors=["memory failed: OSError"])

        assert "memory failed: OSError" in report.text(ABOUT, [failed])

    @pytest.mark.parametrize(
        ("value", "shown"),
        [(0, "0"), (0.01234, "0.0123"), (0.5, "0.50"), (12.34, "12.3"), (12345.6, "12,346")],
    )
    def test_rounds_numbers_to_what_counts(self, value, shown):
        assert report.number(value) == shown


def test_a_table_comes_back_from_json():
    assert results.from_json(json.loads(json.dumps(results.as_json(TABLE)))) == TABLE


class TestMeasures:
    def test_each_has_a_title_and_can_run(self):
        assert all(module.TITLE and callable(module.run) for _, module in measures.chosen())

    def test_some_can_be_chosen(self):
        assert [name for name, _ in measures.chosen(["throughput"])] == ["throughput"]

    def test_an_unknown_one_is_named(self):
        with pytest.raises(ValueError, match="--only names nothing"):
            measures.chosen(["nothing"])


class TestThroughput:
    def test_judges_by_the_medians(self):
        series = [
            Series(jobqueue.name_of(16), "jobs/s", [5000.0, 10_000.0, 6000.0]),
            Series(celery_redis.NAME, "jobs/s", [1000.0]),
            Series(bare.name_of(16), "jobs/s", [12_000.0]),
            Series(pgqueuer_batch.NAME, "jobs/s", [], "not measured: failed"),
        ]

        judged = {reach.text: reach for reach in throughput.reaches(series)}

        assert judged["… at least 5 times Celery over Redis"].met is True
        assert judged["… at least 60 % of its statements bare"].met is False
        assert judged["64 slots: at least PgQueuer"].met is None

    def test_draws_what_was_measured(self):
        by_systems, by_slots = throughput.charts([Series(jobqueue.name_of(4), "jobs/s", [7.0])])

        assert by_systems.values == {"median": [7.0]}
        assert by_slots.values["worker, one process"] == [None, 7.0, None, None]

    def test_compares_systems_of_different_names(self):
        names = [one.name for one in contenders(quick=False, peers=True)]

        assert len(set(names)) == len(names)

    def test_without_peers_is_ours_only(self):
        assert {one.module for one in contenders(quick=True, peers=False)} == {"jobqueue", "bare"}

    def test_says_which_peer_is_not_installed(self):
        one = Contender("a", "a", "", [], None, 1, distributions=["no-such-distribution"])

        assert throughput.Lane(one).series().note == (
            "not measured: no-such-distribution could not be installed"
        )


class TestBareStatement:
    IDS, TOKENS, PERMITS = ([UUID(int=n), UUID(int=n + 1)] for n in (10, 20, 30))
    HINT = UUID(int=4)

    def after(self, statement):
        """The parameters of a statement for other jobs."""
        new = {"ids": [UUID(int=1)], "tokens": [UUID(int=2)], "permits": [UUID(int=3)]}
        return statement.parameters(self.HINT, **new)

    def statement(self, **more):
        kinds = {"ids": self.IDS, "tokens": self.TOKENS, "permits": self.PERMITS}
        known = {frozenset(values): kind for kind, values in kinds.items()}
        parameters = {"j": self.IDS, "t": self.TOKENS, "p": self.PERMITS} | more
        return bare.Statement("…", parameters, known)

    def test_puts_new_ids_where_the_old_ones_were(self):
        assert self.after(self.statement(status=["a", "a"])) == {
            "j": [UUID(int=1)],
            "t": [UUID(int=2)],
            "p": [UUID(int=3)],
            "status": ["a", "a"],
        }

    def test_knows_arrays_that_are_sent_as_text(self):
        text = "{" + ",".join(one.hex for one in reversed(self.IDS)) + "}"

        assert self.after(self.statement(j=text))["j"] == "{" + UUID(int=1).hex + "}"

    @pytest.mark.parametrize(
        ("sent", "then"),
        [
            (bare.HINT, HINT),
            ([UUID(int=0), bare.HINT], [UUID(int=0), HINT]),
            ("{" + bare.HINT.hex + "}", "{" + HINT.hex + "}"),
        ],
    )
    def test_follows_the_hint(self, sent, then):
        assert self.after(self.statement(at=sent))["at"] == then

    def test_refuses_a_statement_that_it_does_not_know(self):
        with pytest.raises(SystemExit, match="permits"):
            self.statement(p=["other"])
