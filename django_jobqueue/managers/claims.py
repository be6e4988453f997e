"""What executors do: claim, renew, settle, release. Answers are keyed by claim token."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Unpack
from uuid import UUID

from django.db import Error as DatabaseFailure

from ..database import ClaimOptions, ClaimRequest
from ..hints import Hints
from ..jsonvalues import decode
from ..querysets import tables_of
from ..states import Claim, Decision, JobStatus, SettleOutcome
from .base import TransitionManager

if TYPE_CHECKING:
    from ..models import Job


TRACES = ("status", "claim_token", "attempts", "worker", "started_at")
"""The columns that tell whether a settle was written before."""

MOST_WAITING_TYPES = 100
"""How many types `waiting_types` tells of at once."""

SOME_PAYLOADS = 10


class ClaimTransitions(TransitionManager):
    """The transitions made on behalf of a claim, and the claim itself."""

    def claim(
        self,
        tokens: Sequence[UUID],
        leases: Mapping[str, timedelta],
        **options: Unpack[ClaimOptions],
    ) -> "list[Job]":
        """Claim at most one job for each token, and return the jobs.

        `leases`: the types wanted and how long a claim of each holds. Options: `executor`
        ("server") and `node_id`; `workers`, who each token is for; `queues`, None for all;
        `max_attempts`, what is written on rows of a type; `hints`, a `Hints` that a claimer keeps
        from claim to claim, which makes the search cheap and hides no job for good; `ids`, only
        these jobs.

        Jobs come by priority, lower first, then by age; scheduled and paused ones do not. The
        attempt is charged here. No tokens, types or queues: an empty list, without a query.
        """
        request = ClaimRequest(tokens, leases, **options)
        return self._database().settle_and_claim([], request)[1] if request else []

    def look(
        self, types: Iterable[str], queues: Sequence[str] | None = None, *, hints: Hints
    ) -> bool:
        """Correct a claimer's hints by what is there; return whether anything may be taken.

        Writes nothing. `queues`: None for all.
        """
        return bool(hints.verify(list(types), queues, self._database().look).takeable)

    def waiting_types(
        self, known: Iterable[str], *, queues: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """Return the types, other than `known`, of which a ready job waits, paused or not.

        Each comes with the payload of one of its jobs, whichever is found first; None where
        Python cannot read that. `queues`: only jobs in these, None for all.

        At most `MOST_WAITING_TYPES`. The others are told of once those are among `known`, so a
        caller adds the types that it was told of and has no use for. On PostgreSQL the cost grows
        with the types passed over and not with the jobs. Where more than 10,000 unknown types
        wait in other queues alone, those behind them are not seen. Elsewhere every ready job is
        read. A SELECT without locks.
        """
        if queues is not None and not queues:
            return {}
        found = self._database().waiting_types(frozenset(known), queues, MOST_WAITING_TYPES)
        return {name: decode(payload) for name, payload in found}

    def some_payloads(self, job_type: str, queues: Sequence[str] | None = None) -> list[Any]:
        """Return the payloads of up to `SOME_PAYLOADS` ready jobs of a type, whichever they are.

        None for one that Python cannot read. `queues`: only jobs in these, None for all.
        """
        ready = self.on_write_alias().ready().filter(type=job_type).order_by()
        if queues is not None:
            ready = ready.filter(queue__in=queues)
        return ready.payloads(SOME_PAYLOADS)

    def renew(self, claims: Iterable[Claim]) -> set[UUID]:
        """Extend the leases of the claims, each by what it was granted; return the tokens held.

        An expired lease that nobody reaped is renewed too: the token is the fence. A row that
        somebody has locked is not waited for; it counts as held while it carries the token.
        """
        asked = list(claims)
        if not asked:
            return set()
        renewed = self._database().renew(asked)
        if len(renewed) == len(asked):
            return renewed
        unrenewed = {claim for claim in asked if claim.token not in renewed}
        carrying = self.on_write_alias().claimed_with(claim.token for claim in unrenewed)
        found = {job.claim for job in carrying.only("claim_token")}
        return renewed | {claim.token for claim in unrenewed & found}

    def settle(self, decisions: Iterable[Decision]) -> dict[UUID, SettleOutcome]:
        """Write how attempts ended; answer each claim token with what was recorded.

        `claim-lost`: the claim no longer held, and nothing changed. Settling again what was
        written before answers as the first time. A token without an answer belongs to a row that
        somebody has locked: send its decision again.
        """
        asked = once_each(decisions)
        written, _ = self._database().settle_and_claim(asked, None) if asked else (set(), [])
        return self._outcomes(asked, written)

    def settle_and_claim(
        self,
        decisions: Iterable[Decision],
        tokens: Sequence[UUID],
        leases: Mapping[str, timedelta],
        **options: Unpack[ClaimOptions],
    ) -> "tuple[dict[UUID, SettleOutcome], list[Job]]":
        """Settle and claim in one round trip: the outcomes of `settle`, the jobs of `claim`."""
        asked = once_each(decisions)
        request = ClaimRequest(tokens, leases, **options)
        if not asked and not request:
            return {}, []
        written, jobs = self._database().settle_and_claim(asked, request or None)
        try:
            outcomes = self._outcomes(asked, written)
        except DatabaseFailure:
            if not jobs:
                raise
            # A second look at locked rows failed: that must not lose the jobs just claimed.
            outcomes = recorded_outcomes(asked, written)
        return outcomes, jobs

    def release(self, claims: Iterable[Claim]) -> set[UUID]:
        """Hand claims back: the jobs wait again, their attempt uncharged; return the tokens.

        Each gets an attempt row with the outcome `released`.
        """
        asked = list(claims)
        return self._database().release(asked) if asked else set()

    def _outcomes(
        self, decisions: Sequence[Decision], written: set[UUID]
    ) -> dict[UUID, SettleOutcome]:
        outcomes = recorded_outcomes(decisions, written)
        unwritten = [d for d in decisions if d.claim.token not in written]
        if not unwritten:
            return outcomes
        outcomes |= self._look_alone(unwritten)
        for decision in unwritten:
            # Most locks are a claimer's that looked at an older snapshot, and gone by now.
            if decision.claim.token not in outcomes:
                written, _ = self._database().settle_and_claim([decision], None)
                outcomes |= dict.fromkeys(written, decision.outcome)
        return outcomes

    def _look_alone(self, decisions: Sequence[Decision]) -> dict[UUID, SettleOutcome]:
        """Say of decisions that were not written whether they were before, or lost their claim.

        A row that still runs under the token was only locked by somebody: it gets no answer.
        """
        job_ids = [decision.claim.job_id for decision in decisions]
        # Rows before attempts: a first write that commits in between is then seen by the second.
        rows = self.on_write_alias().only(*TRACES).in_bulk(job_ids)
        attempts = tables_of(self.model).attempt._default_manager.using(self.write_alias)
        recorded = dict(attempts.filter(job__in=job_ids).values_list("claim_token", "outcome"))
        outcomes = {}
        for decision in decisions:
            claim = decision.claim
            row = rows.get(claim.job_id)
            if recorded.get(claim.token) == decision.outcome or (row and succeeded(row, decision)):
                outcomes[claim.token] = decision.outcome
            elif row is None or row.claim_token != claim.token:
                outcomes[claim.token] = SettleOutcome.CLAIM_LOST
        return outcomes


def recorded_outcomes(
    decisions: Iterable[Decision], written: set[UUID]
) -> dict[UUID, SettleOutcome]:
    """Return the outcomes of the decisions whose tokens were written."""
    return {d.claim.token: d.outcome for d in decisions if d.claim.token in written}


def succeeded(job: "Job", decision: Decision) -> bool:
    """Whether the row is as this very attempt's success would have left it."""
    attempt = decision.attempt
    return (
        decision.outcome == job.status == JobStatus.SUCCEEDED
        and job.attempts == attempt.number
        and job.worker == attempt.worker
        and job.started_at == attempt.started_at
    )


def once_each(decisions: Iterable[Decision]) -> list[Decision]:
    """Return one decision for each claim: a repeat changes nothing."""
    return list({decision.claim.token: decision for decision in decisions}.values())
