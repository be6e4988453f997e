r"""Secrets leave no trace: what looks like one is replaced before a person or a log sees it.

Two functions: `masked` for JSON values, `masked_text` for free text such as error messages and
tracebacks. Both judge by the name that a value stands under, and both know credentials by their
looks: those in a URL, after `Bearer`, of the shape of a JWT. They change what is shown and never
what is stored.

Django's `SafeExceptionReporterFilter` looks for its words anywhere in a setting's name, and a bare
`KEY` is one of them. In payloads that would hide `monkey`, `author` and every cache key, so here
most words count whole (`db_pass`, `userToken`) and only unmistakable ones within others
(`dbpassword`). Numbers that count something (`max_tokens`) are shown, and so are null, true and
false.

A secret that nothing announces ("the code was 4711") cannot be known. When in doubt the text loses
more than the secret.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

MASK = "********"
"""What stands in a secret's place; Django's own pages write the same number of asterisks."""

WORDS = frozenset(
    [
        *("auth", "bearer", "cookie", "cookies", "csc", "csrf", "cvc", "cvv", "dsn", "jwt", "otp"),
        *("pass", "passes", "pin", "pwd", "secrets", "session", "sessions", "sid", "sig"),
        *("signature", "signatures", "tokens", "totp"),
    ]
)
"""A key with one of these words is secret."""

ENDINGS = ("token", "secret")
"""A key with a word that ends like this is secret: `token`, `accesstoken`, `clientsecret`."""

STEMS = (
    *("password", "passwd", "passphrase", "passcode", "credential"),
    *("authorization", "authorisation", "privatekey", "secretkey", "accesskey", "apikey"),
    *("signingkey", "encryptionkey", "creditcard", "cardnumber", "sessionid"),
)
"""A key with one of these anywhere is secret, whatever separates its words: `x-api-key`."""

COUNTING = frozenset(
    ["count", "counts", "limit", "max", "min", "budget", "total", "usage", "used", "tokens"]
)
"""A number under a key with one of these words counts secrets, and is none."""

WHOLE_LINE = ("authorization", "authorisation", "cookie")
"""The rest of the line belongs to one of these when no quotes hold it: a header in plain text."""

SiteWords = Callable[[], Iterable[str]]

_site_words: list[SiteWords] = []


def extend_with(words: SiteWords) -> None:
    """Have the site's own words (`MASKED_KEYS`) count too; they are asked for at every call."""
    _site_words[:] = [words]


def masked(value: Any) -> Any:
    """Return a copy of a JSON value with what looks like a secret replaced by asterisks.

    `value`: anything JSON can hold, nested however deep. Keys, lengths and order stay; tuples
    become lists. Text in it is treated as by `masked_text`. The value itself is not changed.
    """
    extra = _extra_words()
    copies: dict[int, Any] = {}
    pending: list[tuple[Any, Any]] = []

    def copy_of(item: Any) -> Any:
        if isinstance(item, str):
            return _masked_text(item, extra)
        if not isinstance(item, dict | list | tuple):
            return item
        if id(item) not in copies:  # A value that holds itself ends here too.
            copies[id(item)] = {} if isinstance(item, dict) else []
            pending.append((item, copies[id(item)]))
        return copies[id(item)]

    answer = copy_of(value)
    while pending:
        original, copy = pending.pop()
        if isinstance(original, dict):
            for key, item in original.items():
                copy[key] = MASK if _hides(str(key), item, extra) else copy_of(item)
        else:
            copy.extend(copy_of(item) for item in original)
    return answer


def masked_text(text: str) -> str:
    """Return a text with what looks like a secret replaced by asterisks.

    Known are values after a secret name (`password=…`, `"token": "…"`, `Authorization: …`),
    `Bearer` and `Basic` credentials, the password in a URL, private keys in PEM, JSON Web Tokens
    and a few vendors' keys. Masking a masked text changes nothing. Takes time linear in its length.
    """
    return _masked_text(text, _extra_words())


def is_secret(key: str) -> bool:
    """Whether the value under this key or name is to be masked."""
    return _secret(key, _extra_words())


def _extra_words() -> frozenset[str]:
    return frozenset(_joined(word) for words in _site_words for word in words())


# Names

CAMEL_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
SEPARATORS = re.compile(r"[\W_]+")


def _words(key: str) -> list[str]:
    """Return the words of a key in lower case, without digits at their ends."""
    spaced = CAMEL_HUMP.sub("_", key).casefold()
    return [stem for word in SEPARATORS.split(spaced) if (stem := word.rstrip("0123456789"))]


def _joined(key: str) -> str:
    return "".join(_words(key))


@lru_cache(maxsize=4096)
def _secret(key: str, extra: frozenset[str]) -> bool:
    words = _words(key)
    if not WORDS.isdisjoint(words) or any(word.endswith(ENDINGS) for word in words):
        return True
    joined = "".join(words)
    return any(stem in joined for stem in STEMS) or joined in extra or not extra.isdisjoint(words)


def _counts(key: str) -> bool:
    return not COUNTING.isdisjoint(_words(key))


def _hides(key: str, value: Any, extra: frozenset[str]) -> bool:
    """Whether a key is secret and the value under it may be one."""
    if value is None or isinstance(value, bool) or not _secret(key, extra):
        return False
    return not (isinstance(value, int | float) and _counts(key))


# Text. Every repetition is possessive (`++`) or begins where no other match can, so that no text
# makes a search look at a character more than a few times.

NAME = re.compile(
    r"""(?<![\w.-])
    (?P<before>[\w.-]++[ ](?=[\w.-]))?+  # "api key: x" has the name in two words
    (?P<key>[\w.-]++)
    \\{0,7}["']?[\])]?             # the end of a quoted key, an index, PostgreSQL's "Key (x)=(y)"
    [ \t]*+ (?: => | [:!<>]?={1,3} | : ) [ \t]*+
    """,
    re.VERBOSE,
)
QUOTED = re.compile(
    r"""(?P<open>[bBrRuUfF]{0,2} (?P<quote> \\{1,7}["'] | \"{3} | '{3} | ["'] ))
    (?: (?!(?P=quote)) (?: \\[^\n] | [^\n\\] | \\ ) )*+
    (?P<close> (?P=quote) )?
    """,
    re.VERBOSE,
)
BARE = re.compile(r"\S++")
LINE = re.compile(r"[^\r\n]*+")
IN_BRACKETS = re.compile(
    r""" "(?:[^"\\]|\\.)*+" | '(?:[^'\\]|\\.)*+' | [\[({] | [\])}] """, re.VERBOSE | re.DOTALL
)
AFTER_VALUE = "\\\"'`)]}>,;."
NUMBER = re.compile(r"[0-9.]++\Z")
OBVIOUS = frozenset({"None", "null", "True", "true", "False", "false"})

PEM = re.compile(
    r"(-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----)(?:[^-]|-(?!----))*+"
    r"(-----END [A-Z ]{0,30}PRIVATE KEY-----)?"
)
SCHEME = re.compile(
    r"(?<![\w-])((?i:bearer)[ ]+|(?i:basic)[ ]+(?=[a-z]*+[0-9A-Z+/=])(?=[\w+/=]{8}))(\S++)"
)
URL = re.compile(r"(?<![a-zA-Z0-9+.-])[a-zA-Z][a-zA-Z0-9+.-]*+://\S++")
SHAPES = re.compile(
    r"""(?<![A-Za-z0-9])(?:
    eyJ[\w-]{8,}+\.[\w-]{4,}+(?:\.[\w-]*+)?   # a JSON Web Token
    | A(?:KIA|SIA)[0-9A-Z]{16}(?![0-9A-Za-z])  # AWS
    | [rs]k_(?:live|test)_[0-9A-Za-z]{8,}+     # Stripe
    | (?:gh[pousr]|github_pat)_\w{20,}+        # GitHub
    | glpat-[\w-]{20,}+                        # GitLab
    | xox[abeoprs]-[\w-]{10,}+                 # Slack
    | sk-[\w-]{20,}+                           # OpenAI and others
    )""",
    re.VERBOSE,
)


SUSPICIOUS = re.compile(
    r"[=:]|eyJ|A[KS]IA|[rs]k_|gh[pousr]_|github_pat_|glpat-|xox|sk-|-----BEGIN |(?i:bearer |basic )"
)
"""Every secret that is found shows one of these; most log lines do not."""


def _masked_text(text: str, extra: frozenset[str]) -> str:
    if not SUSPICIOUS.search(text):
        return text
    text = PEM.sub(lambda key: f"{key[1]}{MASK}{key[2] or ''}", text)
    text = "".join(_named_values_masked(text, extra))
    text = SCHEME.sub(lambda found: found[1] + _covered(found[2]), text)
    text = URL.sub(lambda url: _without_password(url[0]), text)
    return SHAPES.sub(MASK, text)


def _named_values_masked(text: str, extra: frozenset[str]) -> Iterator[str]:
    """Yield the text in pieces, with the values under secret names covered."""
    done = 0
    brackets = _Brackets(text)
    for name in NAME.finditer(text):
        key, phrase = name["key"], name[0] if name["before"] else ""
        if name.end() <= done or not (_secret(key, extra) or _is_phrase(phrase)):
            continue
        start = max(name.end(), done)
        yield text[done:start]
        value, done = _value_at(text, start, key, brackets)
        yield value
    yield text[done:]


def _is_phrase(phrase: str) -> bool:
    joined = _joined(phrase)
    return any(stem in joined for stem in STEMS)


def _value_at(text: str, start: int, key: str, brackets: "_Brackets") -> tuple[str, int]:
    """Return what is to stand for the value that begins at `start`, and where the value ends."""
    if quoted := QUOTED.match(text, start):
        return f"{quoted['open']}{MASK}{quoted['close'] or ''}", quoted.end()
    if text[start : start + 1] in {"{", "[", "("}:
        end = brackets.end(start)
        close = text[end - 1] if text[end - 1] in "}])" else ""
        return f"{text[start]}{MASK}{close}", end
    whole_line = any(word in _joined(key) for word in WHOLE_LINE)
    value = (LINE if whole_line else BARE).match(text, start)
    if value is None:
        return "", start
    core = value[0].rstrip(AFTER_VALUE)
    if core in OBVIOUS or (NUMBER.match(core) and _counts(key)):
        return value[0], value.end()
    return _covered(value[0]), value.end()


def _covered(value: str) -> str:
    """Return the mask, with the punctuation that follows the value."""
    core = value.rstrip(AFTER_VALUE)
    return MASK + value[len(core) :] if core else value


class _Brackets:
    """Finds where what is in brackets ends, in one pass for all that are never closed."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._unclosed = False

    def end(self, start: int) -> int:
        """Return the end of the bracketed value at `start`: of its line if it is never closed."""
        depth = 0
        if not self._unclosed:
            for found in IN_BRACKETS.finditer(self._text, start):
                depth += {"[": 1, "(": 1, "{": 1, "]": -1, ")": -1, "}": -1}.get(found[0], 0)
                if depth == 0:
                    return found.end()
        self._unclosed = True
        line = LINE.match(self._text, start)
        return line.end() if line else start


def _without_password(url: str) -> str:
    """Return a URL, or several in one word, with the passwords in them covered."""
    first, *rest = url.split("://")
    return "://".join([first, *map(_covered_user_info, [first, *rest], rest)])


def _covered_user_info(before: str, after: str) -> str:
    authority = re.split(r"[/?#]", after, maxsplit=1)[0]
    user, colon, secret = authority.partition(":")
    if "@" not in authority:
        # A password that nobody escaped may hold a slash; a port is all digits.
        if not colon or secret.isdigit() or "@" not in after:
            return after
        authority = after
    info, _, _ = authority.rpartition("@")
    user, colon, _ = info.partition(":")
    host = after[len(info) :]
    if colon:
        return f"{user}:{MASK}{host}"
    # A user alone is a token in https://token@host, and a name in ssh://git@host.
    return f"{MASK}{host}" if before.lower().endswith(("http", "https")) else after
