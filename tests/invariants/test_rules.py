"""Each rule of the record can be broken, and a good record breaks none."""

import pytest

from tests.invariants import rules
from tests.invariants.record import Change, Ending, Record, Run, State
from tests.invariants.rules import breaches, lost_claims

WAITS = State("pending")


class Story:
    """Writes a record event by event, as the database and the handlers would."""

    def __init__(self):
        self.record = Record(["job"], [])
        self.row = None
        self.clock = 0

    def change(self, new, *, old=..., outcome=None, error=""):
        """Change the row; with `outcome` write the attempt row of the claim that ends, too."""
        self.clock += 1
        old = self.row if old is ... else old
        self.record.changes.append(Change(self.clock, self.clock, self.clock, "job", old, new))
        if outcome:
            self.ending(old.token, outcome, error)
        self.row = new
        self.record.table = {} if new is None else {"job": new}
        return self

    def ending(self, token, outcome, error="", *, transaction=None):
        at = self.clock
        row = Ending(at, transaction or at, "job", token, outcome, error)
        self.record.endings.append(row)
        return self

    def enqueue(self):
        return self.change(WAITS)

    def claim(self, token, **columns):
        row = self.row
        claimed = State("running", token, row.attempts + 1, row.hits, self.clock + 3.0, "host:1:1")
        return self.change(claimed._replace(**columns))

    def run(self, *events, token=None, attempt=None):
        for what in events or ("start", "end"):
            self.clock += 1
            claim = token or self.row.token, attempt or self.row.attempts
            self.record.runs.append(Run(self.clock, "job", *claim, what))
        return self

    def renew(self, **columns):
        return self.change(self.row._replace(**{"lease": self.row.lease + 1, **columns}))

    def end(self, status="succeeded", outcome=None, error="", **columns):
        free = self.row._replace(status=status, token=None, lease=None, **columns)
        return self.change(free, outcome=outcome, error=error)


def begun():
    return Story().enqueue()


def claimed():
    return begun().claim("A")


def good():
    """A job that meets everything before it succeeds."""
    story = claimed().renew().run().end("pending", "retry-scheduled", "builtins.ValueError")
    story.change(story.row)  # Promoted.
    story.claim("B").run().end(
        "pending", "rate-limit-deferred", "x.RateLimitError", attempts=1, hits=1
    )
    story.claim("C").run("start").end("pending", "released", attempts=1)
    story.claim("D").run("start").end("pending", "reaped", "x.WorkerDied")
    return story.claim("E").run().end()


def failed_by_the_reaper():
    return claimed().run("start").end("failed", "reaped")


@pytest.mark.parametrize("story", [good, failed_by_the_reaper])
def test_a_good_record_breaks_no_rule(story):
    assert breaches(story().record) == ""


def without(story, what, *values):
    setattr(story.record, what, list(values))
    return story


def gone_from_the_table():
    story = good()
    story.record.table.clear()
    return story


def unlike_the_table():
    story = good()
    story.record.table["job"] = story.row._replace(attempts=9)
    return story


def another_job_s_attempt():
    story = good()
    story.record.endings[0] = story.record.endings[0]._replace(job="other")
    return story


BREACHES = {
    rules.a_row_changes_from_what_it_was: [
        lambda: claimed().change(WAITS, old=WAITS),
        lambda: claimed().change(State("succeeded"), old=None),
        unlike_the_table,
    ],
    rules.a_claim_begins_on_a_free_row: [
        lambda: claimed().claim("B"),
        lambda: claimed().run().end("pending", "retry-scheduled").claim("A"),
        lambda: claimed().run().end().claim("B"),
        lambda: claimed().change(State("running")),
        lambda: claimed().change(State("pending", "A")),
    ],
    rules.a_renewal_extends_the_lease_and_nothing_else: [
        lambda: claimed().renew(attempts=2),
        lambda: claimed().renew(worker="another:1:1"),
        lambda: claimed().renew(lease=0.5),
        lambda: claimed().renew(lease=None),
    ],
    rules.a_terminal_row_was_ended_by_its_last_claim: [
        lambda: begun().change(State("succeeded")),
        lambda: good().change(good().row._replace(hits=7)),
        lambda: good().change(WAITS),
        lambda: good().change(None),
        lambda: claimed().end("pending", "retry-scheduled").change(State("failed", attempts=1)),
        lambda: claimed().claim("B").change(State("failed"), old=State("running", "A")),
    ],
    rules.no_job_is_lost: [
        gone_from_the_table,
        begun,
        claimed,
        lambda: without(good(), "changes"),
        lambda: without(good(), "enqueued"),
        lambda: without(good(), "enqueued", "job", "another"),
    ],
    rules.attempts_are_claims_less_those_given_back: [
        lambda: begun().claim("A", attempts=0),
        lambda: begun().claim("A", attempts=2),
        lambda: claimed().end("pending", "released"),
        lambda: claimed().end("pending", "rate-limit-deferred"),
        lambda: claimed().end("pending", "retry-scheduled", attempts=0),
        lambda: claimed().end("pending", "reaped", attempts=0),
        lambda: claimed().end("pending", "released", attempts=0).change(State("pending", None, 1)),
    ],
    rules.hits_are_the_rate_limits_met: [
        lambda: claimed().end("pending", "rate-limit-deferred", "x.RateLimitError", attempts=0),
        lambda: claimed().end("pending", "rate-limit-deferred", attempts=0, hits=1),
    ],
    rules.an_attempt_row_tells_how_one_claim_ended: [
        lambda: claimed().run().end("failed"),
        lambda: claimed().run().end("pending"),
        lambda: claimed().run().end("succeeded", "failed"),
        lambda: claimed().run().end("failed", "failed").ending("A", "reaped"),
        lambda: claimed().run().end("failed").ending("A", "failed", transaction=99),
        lambda: claimed().ending("A", "reaped"),
        lambda: good().ending("Z", "reaped"),
        lambda: good().ending(None, "reaped"),
        another_job_s_attempt,
    ],
    rules.a_handler_runs_once_for_a_claim: [
        lambda: good().run("start", token="Z"),
        lambda: good().run("start", token="A", attempt=2),
        lambda: claimed().run("start", "start"),
        lambda: claimed().run("start", "end", "start").end(),
        lambda: claimed().end("succeeded"),
        lambda: claimed().run("start").end("succeeded"),
    ],
}


@pytest.mark.parametrize(
    ("rule", "story"),
    [
        pytest.param(rule, story, id=f"{rule.__name__}-{number}")
        for rule, stories in BREACHES.items()
        for number, story in enumerate(stories)
    ],
)
def test_a_rule_can_be_broken(rule, story):
    record = story().record

    assert list(rule(record))
    assert rule.__name__.replace("_", " ") in breaches(record)


def test_every_rule_is_shown_to_be_breakable():
    assert set(BREACHES) == set(rules.RULES)


def test_a_breach_is_told_with_the_history_of_its_job():
    text = breaches(claimed().run("start").claim("B").record)

    assert "claims a row that is claimed" in text
    assert "start attempt 1 A" in text
    assert "running attempts=1 hits=0 token A by host:1:1 lease" in text
    assert text.index("token A") < text.index("token B")


def test_a_claim_is_lost_when_its_handler_leaves_after_the_reaper_came():
    lost = claimed().run("start").end("pending", "reaped").run("end", token="A", attempt=1)
    dead = claimed().run("start").end("pending", "reaped")
    in_time = claimed().run("start", "end").end("pending", "reaped")

    assert [lost_claims(story.record) for story in (lost, dead, in_time)] == [{"A"}, set(), set()]
