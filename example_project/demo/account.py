"""The admin's account."""

import secrets

from django.contrib.auth import get_user_model
from django.db import IntegrityError, transaction

NAME = "admin"


def ensure_admin() -> str | None:
    """Make the account of a new database; return its password, or None when it was there.

    The password is random and only shown once: the database keeps a hash.
    """
    users = get_user_model()._default_manager
    if users.filter(username=NAME).exists():
        return None
    password = secrets.token_urlsafe(9)
    try:
        with transaction.atomic():
            users.create_superuser(username=NAME, email="", password=password)
    except IntegrityError:
        # Another demonstration on the same database was quicker.
        return None
    return password
