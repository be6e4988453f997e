"""The form."""

from django import forms

from .tasks import MOST_ATTEMPTS

LONGEST_TEXT = 20_000


class TextForm(forms.Form):
    """A text, and what the simulated dictionary does."""

    text = forms.CharField(
        label="Text",
        help_text="A task counts its words and guesses its language in the background.",
        max_length=LONGEST_TEXT,
        widget=forms.Textarea(attrs={"rows": 7}),
        error_messages={"required": "Write or paste a text."},
    )
    outages = forms.TypedChoiceField(
        label="The simulated dictionary",
        choices=[
            (0, "answers"),
            (1, "fails once: the task is tried again"),
            (MOST_ATTEMPTS, "fails each time: the task fails in the end"),
        ],
        coerce=int,
        initial=0,
        widget=forms.RadioSelect,
    )
