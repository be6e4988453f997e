"""What the address of a list may ask about."""

from typing import Any

from django.http import HttpRequest


class OwnFiltersOnly:
    """Lets an address ask about nothing but the filters that the list offers.

    Any other look-up could find out, letter by letter, what a user may not see.
    """

    asked_by_filters: frozenset[str] = frozenset()
    """The look-ups of the list's filters. Any other is refused with 400."""

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        """Allow the filters."""
        return lookup in self.asked_by_filters
