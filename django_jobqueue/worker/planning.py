"""How the statements of a worker's own connections are planned: once, and over indexes.

A worker sends the same few statements for good. Planned anew each time they cost half their time.
Planned once, perhaps while the table is empty, they must still be right when it is full: so no
plan may read the whole table. Where a pooler keeps these options from the session, nothing is
prepared: each plan is then made for the table as it is.
"""

import os
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

PLANNER_OPTIONS = (
    "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c enable_mergejoin=off -c jit=off"
)
PREPARE_AT_ONCE = 0

REFUSALS = ("startup parameter", "command-line options")
"""What answers say that take no options: PgBouncer's and Amazon's RDS Proxy's."""


def plan_once(connection: BaseDatabaseWrapper) -> None:
    """Let a PostgreSQL wrapper open sessions whose statements are planned once.

    A site that sets `prepare_threshold` among its `OPTIONS` keeps it, and its own plans. So does
    one that names a libpq service: options given here would replace those of the service.
    """
    from ..database.prepared import stop_preparing, unprepared_aliases

    connect = connection.get_new_connection
    options = connection.settings_dict["OPTIONS"]
    chosen = "prepare_threshold" in options or "service" in options or "PGSERVICE" in os.environ

    def get_new_connection(parameters: dict[str, Any]) -> Any:
        from psycopg import OperationalError

        if chosen or connection.alias in unprepared_aliases:
            return connect(parameters)
        # libpq ignores its variable where options are given.
        own = parameters.get("options") or os.environ.get("PGOPTIONS", "")
        options = f"{own} {PLANNER_OPTIONS}".strip()
        planned = {"options": options, "prepare_threshold": PREPARE_AT_ONCE}
        try:
            raw = connect({**parameters, **planned})
        except OperationalError as error:
            if not any(words in str(error) for words in REFUSALS):
                raise
            stop_preparing(connection, "refuses options")
            return connect(parameters)
        if not has_options(raw):
            stop_preparing(connection, "ignores options")
            raw.prepare_threshold = None
        return raw

    connection.get_new_connection = get_new_connection  # type: ignore[method-assign,assignment]


def has_options(raw: Any) -> bool:
    """Whether the session of a new connection got the options."""
    raw.autocommit = True
    [mode] = raw.execute("SHOW plan_cache_mode", prepare=False).fetchone()
    return bool(mode == "force_generic_plan")
