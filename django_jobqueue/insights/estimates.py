"""What an estimate says, and on what it stands."""

from dataclasses import dataclass
from enum import Enum

from django.db.models import TextChoices
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

ENOUGH_SAMPLES = 20
"""From so many finished runs on a mean is taken for reliable."""


class Basis(TextChoices):
    """How firm the ground under an estimate is."""

    LIVE = "live", gettext_lazy("live workers and enough history")
    PARTIAL = "partial", gettext_lazy("an assumption")
    NONE = "none", gettext_lazy("no history")


class Assumption(Enum):
    """Why an estimate is only partial."""

    FEW_SAMPLES = "few samples"
    NO_WORKER = "no worker"
    FAR_AWAY = "far away"
    NOT_DUE = "not due"


@dataclass(frozen=True, slots=True)
class Estimate:
    """When a job, or all the work of a type, will be done, in seconds from now.

    `seconds`: until it is done; None when nothing can be said. `starts_in`: until a job starts,
    0.0 when it runs; None for a type. `low` and `high` hold between them four of five outcomes,
    as far as durations vary; None for a type. `samples`, `mean`: the runs it stands on. `slots`:
    how many slots it counts on. `at_least`: the true number is larger, because not all the jobs
    in front were counted.
    """

    seconds: float | None
    basis: Basis
    samples: int = 0
    mean: float | None = None
    slots: int = 0
    starts_in: float | None = None
    low: float | None = None
    high: float | None = None
    at_least: bool = False
    assumptions: tuple[Assumption, ...] = ()

    @property
    def explanation(self) -> str:
        """What the estimate stands on, in words."""
        if self.seconds is None:
            return _("No run of this type has finished yet, so there is nothing to go by.")
        words = [
            ngettext(
                "From the mean of %(samples)s finished run.",
                "From the mean of %(samples)s finished runs.",
                self.samples,
            )
            % {"samples": grouped(self.samples)}
        ]
        if Assumption.FEW_SAMPLES in self.assumptions:
            words.append(_("So few runs say little."))
        if Assumption.NO_WORKER in self.assumptions:
            assumed = ngettext(
                "No live worker runs it: one with %(slots)s slot is assumed.",
                "No live worker runs it: one with %(slots)s slots is assumed.",
                self.slots,
            )
            words.append(assumed % {"slots": grouped(self.slots)})
        else:
            counted = ngettext(
                "%(slots)s live slot runs it, and other types may use it too.",
                "%(slots)s live slots run it, and other types may use them too.",
                self.slots,
            )
            words.append(counted % {"slots": grouped(self.slots)})
        if Assumption.FAR_AWAY in self.assumptions:
            words.append(_("More jobs wait in front of it than were counted."))
        if Assumption.NOT_DUE in self.assumptions:
            words.append(_("It waits for its time, and who waits then is not known."))
        return " ".join(words)


def grouped(count: int) -> str:
    """Return a count as the reader's language writes it."""
    return str(number_format(count, force_grouping=True))


def basis_of(samples: int, assumptions: tuple[Assumption, ...]) -> Basis:
    """Return how firm an estimate over so many samples and with these assumptions is."""
    if not samples:
        return Basis.NONE
    return Basis.PARTIAL if assumptions else Basis.LIVE
