"""Which names announce a secret.

Django's `SafeExceptionReporterFilter` looks for its words anywhere in a setting's name, and a bare
`KEY` is one of them. In payloads that would hide `monkey`, `author` and every cache key, so here
most words count whole (`db_pass`, `userToken`) and only unmistakable ones within others
(`dbpassword`). Numbers that count something (`max_tokens`) are shown, and so are null, true and
false. Spanish `clave` is left out for the same reason as `key`.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from unicodedata import normalize

WORDS = frozenset(
    [
        *("auth", "bearer", "cookie", "cookies", "csc", "csrf", "cvc", "cvv", "dsn", "jwt", "otp"),
        *("pass", "passes", "pin", "pw", "pwd", "secrets", "session", "sessions", "sid", "sig"),
        *("signature", "signatures", "tokens", "totp"),
    ]
)
"""A key with one of these words is secret."""

ENDINGS = ("token", "secret")
"""A key with a word that ends like this is secret: `token`, `accesstoken`, `clientsecret`."""

SPOKEN = (
    *("password", "passwd", "passphrase", "passwort", "kennwort"),
    *("contraseña", "contrasena"),
)
"""Secrets that people make up and that may have blanks; a key with one anywhere is secret."""

STEMS = (
    *SPOKEN,
    *("passcode", "credential", "authorization", "authorisation"),
    *("privatekey", "secretkey", "accesskey", "accountkey", "apikey", "signingkey"),
    *("encryptionkey", "creditcard", "cardnumber", "sessionid"),
)
"""A key with one of these anywhere is secret, whatever separates its words: `x-api-key`."""

ERRORS = frozenset(["error", "errors", "exception", "expired", "warning"])
"""A key that ends with one of these tells what is wrong with a secret: `TokenExpired: …`."""

COUNTING = frozenset(
    ["count", "counts", "limit", "max", "min", "budget", "total", "usage", "used", "tokens"]
)
"""A number under a key with one of these words counts secrets, and is none."""

HEADERS = ("authorization", "authorisation", "cookie")
"""The rest of the line belongs to one of these when no quotes hold it: a header in plain text."""

NUMBER = re.compile(r"[0-9.]++\Z")
OBVIOUS = frozenset({"None", "null", "True", "true", "False", "false"})

CAMEL_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
SEPARATORS = re.compile(r"[\W_]+")

SiteWords = Callable[[], Iterable[str]]

_site_words: list[SiteWords] = []


def extend_with(words: SiteWords) -> None:
    """Have the site's own words (`MASKED_KEYS`) count too; they are asked for at every call."""
    _site_words[:] = [words]


def site_words() -> frozenset[str]:
    """Return the site's own words as they are compared: in lower case, without separators."""
    return frozenset(joined(word) for words in _site_words for word in words())


def is_secret(key: str) -> bool:
    """Whether the value under this key or name is to be masked."""
    return secret(key, site_words())


@lru_cache(maxsize=4096)
def secret(key: str, extra: frozenset[str]) -> bool:
    """Whether a key is secret, with `extra` as the site's own words."""
    words = _words(key)
    if words and words[-1] in ERRORS:
        return words[-1] in extra or "".join(words) in extra
    if not WORDS.isdisjoint(words) or any(word.endswith(ENDINGS) for word in words):
        return True
    whole = "".join(words)
    return any(stem in whole for stem in STEMS) or whole in extra or not extra.isdisjoint(words)


def unmistakable(phrase: str) -> bool:
    """Whether a name of several words is secret: `api key`."""
    words = _words(phrase)
    return words[-1:] != [] and words[-1] not in ERRORS and _has(STEMS, phrase)


def spoken(key: str) -> bool:
    """Whether the value under a secret key may be several words."""
    return _has(SPOKEN, key)


def header(key: str) -> bool:
    """Whether the value under a secret key may be a whole line."""
    return _has(HEADERS, key)


def counts(key: str) -> bool:
    """Whether a number under a secret key is no secret."""
    return not COUNTING.isdisjoint(_words(key))


def joined(key: str) -> str:
    """Return the words of a key as one."""
    return "".join(_words(key))


def _has(stems: Iterable[str], key: str) -> bool:
    whole = joined(key)
    return any(stem in whole for stem in stems)


def _words(key: str) -> list[str]:
    """Return the words of a key in lower case, without digits at their ends."""
    if not key.isascii():
        key = normalize("NFKC", key)  # Fullwidth letters, and accents that stand for themselves.
    spaced = CAMEL_HUMP.sub("_", key).casefold()
    return [stem for word in SEPARATORS.split(spaced) if (stem := word.rstrip("0123456789"))]
