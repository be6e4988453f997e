"""Secrets leave no trace: what looks like one is replaced before a person or a log sees it.

`masked` is for JSON values, `masked_text` for free text such as error messages and tracebacks,
`masked_beginning` for text of any length. All judge by the name that a value stands under
(`names`), and know credentials by their looks (`shapes`). They change what is shown and never what
is stored.

What nothing announces ("the code was 4711") cannot be known, and neither can a secret inside a key
or under a name that somebody disguised. When in doubt the text loses more than the secret.
"""

from .covering import MASK
from .names import extend_with, is_secret
from .texts import masked_beginning, masked_text
from .values import masked

__all__ = ["MASK", "extend_with", "is_secret", "masked", "masked_beginning", "masked_text"]
