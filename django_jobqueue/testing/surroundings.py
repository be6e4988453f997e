"""What stands around a handler in a test, where a worker would give it connections of its own."""

from collections.abc import Coroutine, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

from asgiref.sync import async_to_sync
from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import TransactionManagementError

from ..logs import get_logger
from ..wakeups import Announcement
from ..worker.event_loop import Outcome
from ..worker.running import Running

logger = get_logger(__name__)


class CallersThread:
    """Awaits the coroutines of handlers here and now, so that they use the test's connection."""

    def run_coroutine(
        self,
        coroutine: Coroutine[Any, Any, Any],
        running: Running,  # noqa: ARG002 (of the protocol)
    ) -> Any:
        """Await the coroutine; its `sync_to_async` calls come back to this thread."""
        result, error = async_to_sync(outcome_of)(coroutine)
        if error is not None:
            raise error
        return result


async def outcome_of(coroutine: Coroutine[Any, Any, Any]) -> Outcome:
    """Return the result or the exception: SystemExit would end the loop with it."""
    try:
        return await coroutine, None
    except BaseException as error:  # noqa: BLE001 (raised again outside the loop)
        return None, error


@contextmanager
def contained() -> Iterator[None]:
    """Keep the transaction of the test usable whatever the block does in it.

    Outside a transaction this does nothing: there the block works as in a worker.
    """
    with ExitStack() as stack:
        for connection in connections.all(initialized_only=True):
            if connection.in_atomic_block:
                stack.enter_context(kept_usable(connection))
        yield


@contextmanager
def kept_usable(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Undo what the block did if it left the transaction broken; else do what follows a commit.

    A worker's handler runs outside a transaction. So an error harms only the statement it comes
    from, unless it broke the transaction, and what waits for a commit gets it at the end.
    """
    alias = connection.alias
    savepoint: Any = (
        connection.savepoint()
    )  # Django's function for this has another name since 6.1.
    waiting = len(connection.run_on_commit)
    try:
        yield
    finally:
        check_open(connection)
        if is_broken(connection):
            transaction.set_rollback(rollback=False, using=alias)
            connection.savepoint_rollback(savepoint)
            del connection.run_on_commit[waiting:]
        else:
            connection.savepoint_commit(savepoint)
            run_after_commit(connection, waiting)


def check_open(*connections: BaseDatabaseWrapper) -> None:
    """Raise TransactionManagementError if one was closed inside a transaction, which is lost."""
    for connection in connections:
        if connection.closed_in_transaction:
            raise TransactionManagementError(
                f"The connection {connection.alias!r} was closed inside the test's transaction. "
                "Test code that closes connections in a TransactionTestCase."
            )


def is_broken(connection: BaseDatabaseWrapper) -> bool:
    """Whether the transaction takes no more statements until a rollback."""
    info = getattr(connection.connection, "info", None)  # psycopg
    status = getattr(info, "transaction_status", None)
    return connection.needs_rollback or (status is not None and status.name == "INERROR")


def run_after_commit(connection: BaseDatabaseWrapper, first: int) -> None:
    """Run the callbacks from the one at `first` on, those that they register included.

    They are taken off the list: whoever looks at it later shall not run them again. Wake-ups are
    dropped, as no worker can see what the transaction holds.
    """
    # Robust or not is the third part, which not every version of the types knows.
    registered: list[tuple[Any, ...]] = connection.run_on_commit
    while registered[first:]:
        _, callback, robust = registered.pop(first)
        if isinstance(getattr(callback, "__self__", None), Announcement):
            continue
        try:
            callback()
        except Exception:
            if not robust:
                raise
            logger.exception("A robust callback of on_commit failed")


def savepoint(using: str) -> AbstractContextManager[Any]:
    """Return a savepoint inside a transaction, and nothing outside one."""
    inside = connections[using].in_atomic_block
    return transaction.atomic(using=using) if inside else nullcontext()
