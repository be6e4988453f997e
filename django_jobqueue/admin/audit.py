"""Who did what in the admin, in Django's own log of it."""

from typing import Any

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model
from django.http import HttpRequest

NAME_LENGTH = 200
"""So long may the name of what was changed be."""

JSON = "["
"""Django reads an entry that begins so as a structure of its own. After a blank it is text."""


def note(
    request: HttpRequest,
    model: type[Model],
    flag: int,
    what: str,
    text: str,
    *,
    object_id: object = None,
) -> None:
    """Write one entry about one object, or about several at once when it has no id.

    `flag` is one of those of `django.contrib.admin.models`.
    """
    user: Any = request.user
    LogEntry.objects.create(
        user_id=user.pk,
        content_type_id=ContentType.objects.get_for_model(model).pk,
        object_id=None if object_id is None else str(object_id),
        object_repr=what[:NAME_LENGTH],
        action_flag=flag,
        change_message=f" {text}" if text.startswith(JSON) else text,
    )
