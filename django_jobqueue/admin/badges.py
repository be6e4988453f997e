"""Words with an icon, for states: the shape tells what the colour does."""

from django.utils.html import format_html
from django.utils.safestring import SafeString


def badge(name: str, icon: str, text: object) -> SafeString:
    """Return a text with its icon; `name` ends the class that gives the colour, in jobs.css."""
    return format_html(
        '<span class="jobqueue-state jobqueue-{}">'
        '<span class="jobqueue-icon" aria-hidden="true">{}</span> {}</span>',
        *(name, icon, text),
    )
