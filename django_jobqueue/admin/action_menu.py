"""The menu of actions above the list of jobs."""

from django.contrib.admin.helpers import ActionForm


class ActionMenu(ActionForm):
    """Django's own menu, which django-unfold can use as well.

    Its pages show the button beside the menu when a script sees that an action is chosen; the
    script finds the menu by this attribute. Others ignore it.
    """

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.fields["action"].widget.attrs["x-model"] = "action"
