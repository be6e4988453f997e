"""Pages of a table too large to count: no statement here reads further than it has to."""

from typing import Any

from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.http import HttpRequest
from django.utils.formats import number_format
from django.utils.functional import cached_property

from ..states import COUNT_LIMIT
from .filters import SERVED_STATES, QueueFilter, TypeFilter
from .rows import as_rows

UNSERVED_COUNT_LIMIT = 1_000
"""The same for what no index finds: to find so many, many times more are read."""


class CappedPaginator(Paginator):  # type: ignore[type-arg]
    """Counts up to a limit. `more` tells whether there are others beyond."""

    @cached_property
    def limit(self) -> int:
        """How many are counted at most."""
        return COUNT_LIMIT

    @cached_property
    def counted(self) -> int:
        """How many there are; one more than the limit stands for any higher number."""
        rows: Any = self.object_list
        # In the order of the page: else a plan may look for them from the oldest on.
        return int(rows[: self.limit + 1].count())

    @property
    def count(self) -> int:
        """How many can be paged through."""
        return min(self.counted, self.limit)

    @property
    def more(self) -> bool:
        """Whether there are more than can be paged through."""
        return self.counted > self.limit


class JobChangeList(ChangeList):
    """Reads its page first, and counts only when that does not tell how many there are."""

    paginator: CappedPaginator

    @property
    def has_more(self) -> bool:
        """Whether there are more jobs than the list counts."""
        return self.paginator.more

    @property
    def shown_limit(self) -> str:
        """How many are counted, as people write numbers."""
        return number_format(self.paginator.limit, force_grouping=True)

    @property
    def is_unserved(self) -> bool:
        """Whether the jobs are chosen by what no index serves: a name, of jobs in any state."""
        specs: list[Any] = list(self.filter_specs)
        chosen = {spec.parameter_name: spec.value() for spec in specs}
        by_name = any(chosen.get(spec.parameter_name) for spec in (TypeFilter, QueueFilter))
        return by_name and not self.query and chosen.get("status") not in SERVED_STATES

    def get_results(self, request: HttpRequest) -> None:
        """Read the rows of the page that is asked for, all of them here."""
        size = self.list_per_page
        start = (self.page_num - 1) * size
        self.paginator = CappedPaginator(self.queryset, size)
        if self.is_unserved:
            self.paginator.limit = UNSERVED_COUNT_LIMIT
        if not 0 <= start < self.paginator.limit:
            raise IncorrectLookupParameters
        rows = list(as_rows(self.queryset)[start : start + size + 1])
        if start and not rows:
            raise IncorrectLookupParameters
        if len(rows) <= size:
            self.paginator.counted = start + len(rows)
        self.result_list = rows[:size]
        self.result_count = self.paginator.count
        self.multi_page = self.result_count > size
        self.show_full_result_count = False
        self.full_result_count = None
        self.show_admin_actions = True
        self.can_show_all = False
