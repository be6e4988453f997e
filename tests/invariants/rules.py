"""The rules that hold for a record, whatever happened.

A rule is a function of a `Record` that yields a `Problem` for each breach.
"""

from collections import defaultdict
from typing import NamedTuple

TERMINAL = {"succeeded", "failed", "cancelled"}
GIVEN_BACK = {"rate-limit-deferred", "released"}
MOST_SHOWN = 3


class Problem(NamedTuple):
    """A breach of a rule by one job."""

    job: str
    words: str


def a_row_changes_from_what_it_was(record):
    """The record has no gap: a write that it missed would show here."""
    for job, changes in record.by_job.items():
        before = None
        for change in changes:
            if change.old != before:
                yield Problem(job, f"#{change.number} changes {change.old}, and it was {before}")
            before = change.new
        if job in record.table and record.table[job] != before:
            yield Problem(job, "the table holds what nobody wrote")


def a_claim_begins_on_a_free_row(record):
    """No row has two live claims at once, and no token serves twice."""
    for change in record.changes:
        if change.is_claim and change.old is not None and change.old.token is not None:
            yield Problem(change.job, f"#{change.number} claims a row that is claimed")
        if change.is_claim and (change.old is None or change.old.status != "pending"):
            yield Problem(change.job, f"#{change.number} claims a row that does not wait")
        if change.new is not None and (change.new.token is None) == (
            change.new.status == "running"
        ):
            yield Problem(change.job, f"#{change.number}: a token is held exactly while it runs")
    for token, claims in record.claims.items():
        for claim in claims[1:]:
            yield Problem(claim.job, f"#{claim.number} claims with {token} a second time")


def a_renewal_extends_the_lease_and_nothing_else(record):
    for change in record.changes:
        if not change.is_renewal:
            continue
        if change.new._replace(lease=None) != change.old._replace(lease=None):
            yield Problem(change.job, f"#{change.number} changes a row that is claimed")
        elif change.new.lease is None or change.new.lease < (change.old.lease or 0):
            yield Problem(change.job, f"#{change.number} shortens a lease")


def a_terminal_row_was_ended_by_its_last_claim(record):
    """The reaper may fail it too, and then it ends that same claim."""
    for job, changes in record.by_job.items():
        last = None
        for change in changes:
            if change.old is not None and change.old.status in TERMINAL:
                yield Problem(job, f"#{change.number} comes after the end")
            elif change.new is not None and change.new.status in TERMINAL:
                if last is None or change.old is None or change.old.token != last:
                    yield Problem(job, f"#{change.number} ends it without its last claim, {last}")
            if change.is_claim:
                last = change.new.token


def no_job_is_lost(record):
    """Every job that was enqueued was inserted, is still there, and came to its end."""
    for job in record.enqueued:
        row = record.table.get(job)
        if job not in record.by_job:
            yield Problem(job, "it was never inserted")
        elif row is None:
            yield Problem(job, "it is gone from the table")
        elif row.status not in TERMINAL:
            yield Problem(job, f"it is {row.status} after all is done")
    for job in record.by_job.keys() - set(record.enqueued):
        yield Problem(job, "nobody enqueued it")


def attempts_are_claims_less_those_given_back(record):
    """At every moment: a deferral and a release give an attempt back, nothing else does."""
    for job, changes in record.by_job.items():
        claims = given_back = 0
        for change in changes:
            if change.is_end:
                endings = record.endings_of.get(change.old.token, [])
                given_back += any(ending.outcome in GIVEN_BACK for ending in endings)
            claims += change.is_claim
            if change.new is not None and change.new.attempts != claims - given_back:
                yield Problem(
                    job,
                    f"#{change.number}: {change.new.attempts} attempts after {claims} claims"
                    f" of which {given_back} were given back",
                )


def hits_are_the_rate_limits_met(record):
    met = defaultdict(int)
    for ending in record.endings:
        met[ending.job] += ending.error.endswith("RateLimitError")
    for job, row in record.table.items():
        if row.hits != met[job]:
            yield Problem(job, f"{row.hits} hits after {met[job]} rate limits")


def an_attempt_row_tells_how_one_claim_ended(record):
    """Written by the transaction that ended the claim; a success has none, any other end one."""
    for ending in record.endings:
        claimed = [claim.job for claim in record.claims.get(ending.token, [])]
        ended = [end.transaction for end in record.ends.get(ending.token, [])]
        if claimed != [ending.job]:
            yield Problem(ending.job, f"an attempt row of a claim it never had, {ending.token}")
        elif ended != [ending.transaction]:
            yield Problem(ending.job, f"an attempt row apart from the end of {ending.token}")
    for token, ends in record.ends.items():
        succeeded = ends[0].new is not None and ends[0].new.status == "succeeded"
        rows = len(record.endings_of.get(token, []))
        if rows != (0 if succeeded else 1):
            yield Problem(ends[0].job, f"{rows} attempt rows tell how {token} ended")


def a_handler_runs_once_for_a_claim(record):
    """Under the claim's own token and number; and a success was run."""
    for token, starts in record.starts.items():
        claims = record.claims.get(token, [])
        for start in starts:
            if [(c.job, c.new.attempts) for c in claims] != [(start.job, start.attempt)]:
                yield Problem(start.job, f"a handler started without a claim of {token}")
        if len(starts) > 1:
            yield Problem(starts[0].job, f"{len(starts)} handlers started for {token}")
    left = {run.token for run in record.runs if run.what == "end"}
    for token, ends in record.ends.items():
        if ends[0].new is not None and ends[0].new.status == "succeeded" and token not in left:
            yield Problem(ends[0].job, f"it succeeded and no handler returned under {token}")


RULES = (
    a_row_changes_from_what_it_was,
    a_claim_begins_on_a_free_row,
    a_renewal_extends_the_lease_and_nothing_else,
    a_terminal_row_was_ended_by_its_last_claim,
    no_job_is_lost,
    attempts_are_claims_less_those_given_back,
    hits_are_the_rate_limits_met,
    an_attempt_row_tells_how_one_claim_ended,
    a_handler_runs_once_for_a_claim,
)


def breaches(record):
    """Return what breaks which rule, with the history of the first jobs that do."""
    texts = []
    for rule in RULES:
        problems = list(rule(record))
        if problems:
            texts.append(f"{rule.__name__.replace('_', ' ')}: broken {len(problems)} times")
        for job, words in problems[:MOST_SHOWN]:
            texts.append(f"  job {job}: {words}\n{record.history(job)}")
    return "\n".join(texts)


def lost_claims(record):
    """Return the tokens whose claim was reaped while its handler went on, until it left."""
    reaped = {e.token: e.at for e in record.endings if e.outcome == "reaped"}
    return {
        run.token
        for run in record.runs
        if run.what == "end" and run.token in reaped and run.at > reaped[run.token]
    }
