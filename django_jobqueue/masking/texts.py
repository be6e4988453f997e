"""Secrets in free text: messages, tracebacks, log lines, command lines, markup."""

import re
from collections.abc import Iterator

from . import names, shapes
from .covering import MASK, core
from .spans import Spans

# For the repetitions see `shapes`.

NAMED = re.compile(
    r"""(?: (?<![\w.-])(?!(?<=%)[\dA-Fa-f]{2}) | (?<=%[\dA-Fa-f]{2}) )  # not in "%26", but after it
    (?: (?P<before>(?!--)[\w.-]++[ ](?!--)(?=[\w.-]))  # "api key: x" has the name in two words
      | (?!(?!--)[\w.-]++[ ](?!--)(?=[\w.-])) )
    (?P<key>[\w.-]++)
    (?P<after>
        (?:\[\w{0,9}\]|(?!\[\w{0,9}\]))   # an index
        (?:\\{0,7}["']|%(?:25)?2[27])?     # the end of a quoted key, perhaps encoded for a URL
        [\])]?                             # d["key"]=, PostgreSQL's "Key (x)=(y)"
    )
    (?: (?P<colon>:[ \t]++) | [ \t]*+ (?: [:!<>]?={1,3}>? | : | %(?:25)?3[ADad] ) [ \t]*+ )
    """,
    re.VERBOSE,
)
"""`password=`, `"api_key": `, `token%3D`, and the like."""

OPTION = re.compile(
    r"""(?<![\w.-])(?<!\*{8})(?P<key>--[\w-]++)
    (?: [ \t]++ | \\{0,7}["'][ \t]*+,[ \t]*+ )(?=[^\s-])""",
    re.VERBOSE,
)
"""`--password x` and `'--password', 'x'`."""

PAIR = re.compile(
    r"""[\[(][ \t]*+ [bBrRuU]?(?P<quote>\\{0,7}["'])(?P<key>[\w.-]++)(?P=quote)
    [ \t]*+,[ \t]*+ (?=[bBrRuU]?\\{0,7}["'])""",
    re.VERBOSE,
)
"""`("password", "x")`: two and no more, as field names come in lists too."""
PAIR_ENDS = re.compile(r"[ \t]*+,?[ \t]*+[\])]")

FIELD = re.compile(
    r"""(?<![\w.-])(?:[nN]ame|NAME|[kK]ey|KEY)\\{0,7}["']?[ \t]*+[=:][ \t]*+
    [bBrRuU]?(?P<quote>\\{0,7}["'])(?P<key>[\w. -]{1,60})(?P=quote)
    (?: (?!\b(?:[nN]ame|NAME|[kK]ey|KEY)\b) [^<>{}] ){0,200}?
    (?<![\w.-])(?:value|Value)\\{0,7}["']?[ \t]*+[=:][ \t]*+""",
    re.VERBOSE,
)
"""`{"name": "password", "value": "x"}` and `<input name="password" value="x">`."""

ELEMENT = re.compile(
    r"""(<(?:[\w.-]++:|(?![\w.-]++:))(?P<key>[\w.-]++)(?:\s[^<>]*+)?>
    (?:<!\[CDATA\[|(?!<!\[CDATA\[)))
    (?P<value>(?!=)[^<]++)(?=</)""",
    re.VERBOSE,
)
"""`<password>x</password>`."""

ANNOUNCEMENTS = (
    (FIELD, ("value", "Value")),
    (PAIR, (",",)),
    (OPTION, ("--",)),
    (NAMED, ("",)),
)
"""What announces a value, and of what a text shows one that has it."""

SUSPICIOUS = re.compile(rf"[=:]|</|%(?:25)?3|--\w|[\"'][ \t]*,|{shapes.TRACES}")
"""Every secret that is found shows one of these; most log lines do not."""


def masked_text(text: str) -> str:
    """Return a text with what looks like a secret replaced by asterisks.

    Known are values after a secret name (`password=…`, `"token": "…"`, `Authorization: …`,
    `--password …`, `("api_key", "…")`, `<password>…</password>`), `Bearer` and `Basic` credentials,
    the password in a URL, private keys in PEM, JSON Web Tokens and a few vendors' keys. Masking a
    masked text changes nothing. Takes time linear in its length.
    """
    return text_masked(text, names.site_words())


LONGEST_CREDENTIAL = 2_000
"""No longer is what only its end gives away: the user and the password in a URL."""


def masked_beginning(text: str, length: int) -> str:
    """Return the beginning of a text, masked, at a cost that the rest of the text does not raise.

    Of a text longer than `length` characters only so many are read. The word that they end in is
    left out (of a very long one the end), because half a secret does not look like one.
    """
    if len(text) <= length:
        return masked_text(text)
    last_words = text[:length][-LONGEST_CREDENTIAL:]
    begun = re.split(r"\s", last_words)[-1]
    return masked_text(text[: length - len(begun)]) + "…"


def text_masked(text: str, extra: frozenset[str]) -> str:
    """Return the text masked, with `extra` as the site's own secret words."""
    if not SUSPICIOUS.search(text):
        return text
    text = shapes.keys_covered(text)
    if "</" in text:
        text = ELEMENT.sub(lambda element: _element_covered(element, extra), text)
    for pattern, traces in ANNOUNCEMENTS:
        if any(trace in text for trace in traces):
            text = "".join(_values_covered(text, pattern, extra))
    return shapes.credentials_covered(text)


def _values_covered(text: str, pattern: re.Pattern[str], extra: frozenset[str]) -> Iterator[str]:
    """Yield the text in pieces, with the values covered that a secret name announces."""
    done = 0
    spans = Spans(text)
    for found in pattern.finditer(text):
        if found.end() <= done or not (name := _secret_name(found, extra)):
            continue
        start = max(found.end(), done)
        value, end = spans.cover(start, name, words=_may_have_blanks(found, name))
        if pattern is PAIR and not PAIR_ENDS.match(text, end):
            continue
        yield text[done:start]
        yield value
        done = end
    yield text[done:]


def _secret_name(found: re.Match[str], extra: frozenset[str]) -> str:
    """Return the name that was found if it is secret: one word, or two that are unmistakable."""
    if names.secret(found["key"], extra):
        return found["key"]
    if found.re is NAMED and found["before"] and names.unmistakable(found[0]):
        return found[0]
    return ""


def _may_have_blanks(found: re.Match[str], name: str) -> bool:
    """Whether the value may be several words: `passphrase: correct horse`."""
    return found.re is NAMED and bool(found["colon"]) and not found["after"] and names.spoken(name)


def _element_covered(element: re.Match[str], extra: frozenset[str]) -> str:
    inner = core(element["value"]).strip()
    shown = inner in {"", *names.OBVIOUS} or (
        names.NUMBER.match(inner) and names.counts(element["key"])
    )
    return element[0] if shown or not names.secret(element["key"], extra) else element[1] + MASK
