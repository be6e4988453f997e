"""What jobs are about, as pages of the same admin. Nothing here asks the database."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.contrib.admin import AdminSite
from django.contrib.admin.utils import quote
from django.core.exceptions import ValidationError
from django.db.models import Model
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.functional import cached_property


@dataclass
class SubjectLinks:
    """Finds the addresses of subjects for one request: make one for a page, not one a row."""

    site: AdminSite
    request: HttpRequest

    def url(self, subject_type: str | None, subject_id: str | None) -> str | None:
        """Return the address of a subject's page, None without one that the user may see.

        A subject type names a model that is registered in this admin: "files.document", or
        "document" where no other registered model is called that.
        """
        model = self._models.get((subject_type or "").lower())
        if model is None or not subject_id:
            return None
        if not self.site.get_model_admin(model).has_view_permission(self.request):
            return None
        pk = primary_key(model, subject_id)
        if pk is None:
            return None
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}_change"
        try:
            return reverse(name, args=[quote(pk)], current_app=self.site.name)
        except NoReverseMatch:  # A model's admin may do without that page.
            return None

    @cached_property
    def _models(self) -> dict[str, type[Model]]:
        registered = [model for model in apps.get_models() if self.site.is_registered(model)]
        by_label = {model._meta.label_lower: model for model in registered}
        uses = Counter(model._meta.model_name for model in registered)
        unique = {name: m for m in registered if uses[name := m._meta.model_name or ""] == 1}
        return unique | by_label


def primary_key(model: type[Model], text: str) -> Any:
    """Return the primary key that the text is, None when it cannot be one."""
    field: Any = model._meta.pk
    try:
        value = field.to_python(text)
        field.run_validators(value)
    except (ValidationError, ValueError, TypeError, OverflowError):
        return None
    return value
