"""What the admin pages of the queue load."""

from django import template
from django.utils.formats import number_format

from ..wording import exact, mode_in_words

register = template.Library()
register.filter("exact", exact)
register.filter("mode_in_words", mode_in_words)


@register.filter
def grouped(count: int | None) -> str:
    """`{{ count|grouped }}`: a count as the reader's language writes it; empty for None."""
    return "" if count is None else str(number_format(count, force_grouping=True))
