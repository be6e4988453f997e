"""PostgreSQL: settle and claim in one statement, and the search behind a claim.

A claim looks at the jobs near its hints. Where that is too little though there may be more, it
has a look at every lane, and claims from there.
"""

from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from django.db import DatabaseError
from django.db.models import BooleanField, Case, Q, Value, When
from django.db.models.expressions import RawSQL

from ..hints import ABOVE_EVERY_PRIORITY, MOST_LEVELS, Hints, Position, Sight
from ..states import Decision, JobStatus, SettleOutcome
from . import search, statements
from .arrays import array
from .base import ClaimRequest, Tables, in_id_order
from .columns import (
    Parameters,
    array_of_queues,
    columns_of_decisions,
    columns_of_request,
    columns_of_successes,
)
from .errors import is_conflict, is_refusal
from .hydration import maker_of
from .session import Session, compiled, full_text, quoted

if TYPE_CHECKING:
    from ..models import Job

SMALL_REACHES = (72, 128)

CONTENTION_RETRIES = 3


class Found(NamedTuple):
    """What one statement settled and claimed; how many jobs it saw, and could have taken.

    `granted`: the tokens that rows carry now. A row that cannot be read is among them, and not
    among the jobs.
    """

    settled: set[UUID]
    granted: set[UUID]
    jobs: "list[Job]"
    seen: int
    takeable: int

    def add(self, more: "Found") -> None:
        """Count what another statement claimed for the same request."""
        self.granted.update(more.granted)
        self.jobs.extend(more.jobs)


class Claiming(Session):
    """The transitions that a worker makes all the time."""

    def settle_and_claim(
        self, decisions: Sequence[Decision], request: ClaimRequest | None
    ) -> "tuple[set[UUID], list[Job]]":
        """Settle, claim, or both; one statement, and more only where a claim saw too little."""
        if not request:
            return self._settle(decisions) if decisions else set(), []
        if request.ids is not None:
            chosen = self._statement(decisions, request, search.CHOSEN, Hints())
            return chosen.settled, chosen.jobs
        hints = request.hints if isinstance(request.hints, Hints) else Hints(request.hints)
        ticket = hints.ask_for(request.leases, request.queues)
        found = self._statement(decisions, request, search.NEAR, hints)
        if found.jobs:
            hints.advance(ticket, positions(found.jobs), found.jobs[0].started_at)
        if len(found.granted) < len(request.tokens):
            self._search_on(request, found, hints)
        if len(found.jobs) < len(found.granted):
            hints.doubt()  # A slot got nothing, though there may be more.
        return found.settled, found.jobs

    def look(
        self, types: Iterable[str], queues: Sequence[str] | None, levels: Iterable[int]
    ) -> Sight:
        """Return where the first takeable jobs lie, and what lies before them."""
        parameters = {
            "types": array(types),
            "queues": array_of_queues(queues),
            "levels": array(levels),
            "above": ABOVE_EVERY_PRIORITY,
            "most_levels": MOST_LEVELS,
        }
        rows = self.fetch(look_text(self.tables, with_queues=queues is not None), parameters)
        takeable = sorted(Position(*place) for *place, free, _ in rows if free)
        passed = sorted(Position(*place) for *place, free, _ in rows if not free)
        now = datetime.fromtimestamp(rows[0][-1], UTC) if rows else None
        return Sight(tuple(takeable), tuple(passed), now)

    def _settle(self, decisions: Sequence[Decision]) -> set[UUID]:
        settle, parameters = settle_of(decisions)
        text = settle_text(self.tables, settle)
        return {token for (token,) in self.fetch(text, parameters)}

    def _search_on(self, request: ClaimRequest, found: Found, hints: Hints) -> None:
        """Add to the jobs found, for the tokens that got none.

        What was found before stands, whatever fails here, as long as the outcome is known.
        """
        try:
            seen = self._try_again(request, found, hints)
            if len(found.granted) == len(request.tokens):
                return
            if hints.any or seen >= reach_of(1):  # There may be more before, or behind.
                self._search_everywhere(request, found, hints)
        except DatabaseError as error:
            outcome_known = is_conflict(error) or is_refusal(error)
            if self.connection.in_atomic_block or not outcome_known:
                raise
            hints.doubt()

    def _try_again(self, request: ClaimRequest, found: Found, hints: Hints) -> int:
        """Claim again what others took away; return how many jobs the last try saw."""
        last = found
        for _ in range(CONTENTION_RETRIES):
            rest = without(request, found.granted)
            if not rest or last.takeable == len(last.granted):
                break
            last = self._statement([], rest, search.NEAR, hints)
            found.add(last)
        return last.seen

    def _search_everywhere(self, request: ClaimRequest, found: Found, hints: Hints) -> None:
        """Look at every lane, as often as that is worth its time."""
        if not hints.may_look:
            hints.doubt()
            return
        if hints.verify(request.leases, request.queues, self.look).takeable:
            rest = without(request, found.granted)
            more = self._statement([], rest, search.LANES, hints)
            found.add(more)
            if more.granted:
                hints.look_paid_off()

    def _statement(
        self, decisions: Sequence[Decision], request: ClaimRequest, where: str, hints: Hints
    ) -> Found:
        parameters = columns_of_request(request, hints.spans())
        settle = ""
        if decisions:
            settle, settled = settle_of(decisions)
            parameters |= settled
        text = claim_text(
            self.tables,
            self.using,
            settle,
            where,
            reach_of(len(request.tokens)),
            with_queues=request.queues is not None,
        )
        rows = self.fetch(text, parameters)
        claimed = [row for row in rows if row[3] is not None]
        make = maker_of(self.tables.job, self.using)
        jobs = (make(row[4:]) for row in claimed)
        return Found(
            settled={row[2] for row in rows if row[2] is not None},
            granted={request.tokens[row[3] - 1] for row in claimed},
            jobs=[job for job in jobs if job is not None],
            seen=rows[0][0] if rows else 0,
            takeable=rows[0][1] if rows else 0,
        )


def settle_of(decisions: Sequence[Decision]) -> tuple[str, Parameters]:
    """Return the SQL that settles the decisions, and its parameters."""
    ordered = in_id_order(decisions)
    if all(decision.outcome is SettleOutcome.SUCCEEDED for decision in ordered):
        return statements.SUCCEED, columns_of_successes(ordered)
    return statements.SETTLE, columns_of_decisions(ordered)


def reach_of(count: int) -> int:
    """Return at how many jobs to look to claim `count`.

    At least 4 count + 64, enough to choose from while others claim; rounded up, so that there are
    few different statements.
    """
    least = 4 * count + 64
    return next((reach for reach in SMALL_REACHES if reach >= least), 1 << least.bit_length())


def without(request: ClaimRequest, used: Container[UUID]) -> ClaimRequest:
    """Return the request for the tokens that no row carries."""
    return replace(request, tokens=[token for token in request.tokens if token not in used])


def positions(jobs: "Iterable[Job]") -> list[Position]:
    """Return the places of jobs in the order of claims."""
    return [Position(job.priority, job.pk) for job in jobs]


@cache
def settle_text(tables: Tables, settle: str) -> str:
    """Return the statement that only settles."""
    return full_text(tables, f"WITH {settle} {statements.SETTLED}")


@cache
def claim_text(
    tables: Tables, using: str, settle: str, where: str, reach: int, *, with_queues: bool
) -> str:
    """Return the statement that claims and, with a settle, settles."""
    parts = [part for part in (settle, where, statements.CLAIM) if part]
    answer = statements.SETTLED_AND_CLAIMED if settle else statements.CLAIMED
    return full_text(
        tables,
        f"WITH RECURSIVE {', '.join(parts)} {answer}",
        pick=pick_text(tables, using),
        reach=str(reach),
        **parts_for(with_queues=with_queues),
    )


@cache
def look_text(tables: Tables, *, with_queues: bool) -> str:
    """Return the statement of a look."""
    return full_text(tables, search.LOOK, **parts_for(with_queues=with_queues))


def parts_for(*, with_queues: bool) -> dict[str, str]:
    """Return the parts of a search that is for some queues, or for all."""
    if with_queues:
        return {"of_queues": search.OF_QUEUES, "lanes": search.LANES_OF_QUEUES}
    return {"of_queues": "", "lanes": search.LANES_OF_ALL_QUEUES}


@cache
def pick_text(tables: Tables, using: str) -> str:
    """Return the SELECT that locks one wanted job if it still waits; nothing if it does not.

    The condition is a CASE, so that no partial index can serve it.
    """
    still_waits = Case(
        When(status=JobStatus.PENDING, then=Q(scheduled_for__isnull=True)),
        default=Value(value=False),
        output_field=BooleanField(),
    )
    at_its_spot = RawSQL(f"{quoted(tables.job)}.ctid = wanted.spot", (), BooleanField())
    jobs = tables.job._default_manager.using(using).filter(at_its_spot, still_waits)
    return compiled(jobs.select_for_update(skip_locked=True, no_key=True).values("pk"), using)
