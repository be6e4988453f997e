"""What the admin pages of the queue load."""

from django import template
from django.utils.formats import number_format

register = template.Library()


@register.filter
def grouped(count: int | None) -> str:
    """`{{ count|grouped }}`: a count as the reader's language writes it; empty for None."""
    return "" if count is None else str(number_format(count, force_grouping=True))
