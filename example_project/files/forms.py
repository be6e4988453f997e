"""The upload form."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.conf import settings

if TYPE_CHECKING:
    from django.core.files.uploadedfile import UploadedFile


class SeveralFilesInput(forms.ClearableFileInput):
    """A file input that lets a person choose several files."""

    allow_multiple_selected = True


class SeveralFilesField(forms.FileField):
    """One or more files; each is checked like the file of a FileField."""

    widget = SeveralFilesInput

    def clean(self, data: Any, initial: Any = None) -> list["UploadedFile[bytes]"]:
        """Return the files; refuse them all when one is empty or too large."""
        given = data if isinstance(data, list | tuple) else [data]
        files = [super(SeveralFilesField, self).clean(file, initial) for file in given or [None]]
        limit = settings.MAX_UPLOAD_MIB
        for file in files:
            if file.size > limit * 1024 * 1024:
                raise forms.ValidationError(
                    f"{file.name} is larger than {limit} MiB. Choose a smaller file."
                )
        return files


class UploadForm(forms.Form):
    """Files to take in."""

    uploads = SeveralFilesField(
        label="Files",
        help_text="Texts, images or anything else. Jobs then look into them in the background.",
        max_length=255,
        error_messages={
            "required": "Choose at least one file.",
            "empty": "One of the files is empty. Choose files with something in them.",
        },
    )
