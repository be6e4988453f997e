import signal
from threading import get_ident

import pytest

from example_project.demo.interrupts import SIGNALS, counted_interrupts
from tests.managers.rows import Aside


class Interrupted:
    """Is interrupted where an exception goes no further."""

    def __init__(self, number: signal.Signals) -> None:
        self.number = number

    def __del__(self) -> None:
        signal.raise_signal(self.number)


@pytest.mark.parametrize("number", SIGNALS)
def test_an_interrupt_that_comes_in_a_destructor_is_counted(number: signal.Signals) -> None:
    with counted_interrupts() as interrupts:
        assert not interrupts
        doomed = Interrupted(number)
        del doomed
        assert interrupts
        signal.raise_signal(number)

    assert interrupts.count == 2


def test_the_handlers_from_before_are_back_afterwards() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]

    with counted_interrupts():
        assert [signal.getsignal(number) for number in SIGNALS] != before

    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_another_thread_than_the_main_one_leaves_the_handlers_alone() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]

    def count() -> tuple[int, bool]:
        with counted_interrupts() as interrupts:
            same = [signal.getsignal(number) for number in SIGNALS] == before
            return get_ident(), same and not interrupts

    thread, untouched = Aside(count).answer()

    assert thread != get_ident()
    assert untouched
