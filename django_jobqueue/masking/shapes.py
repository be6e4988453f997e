"""Credentials that are known by their looks, whatever name they stand under.

Every repetition is possessive (`++`), bounded, or can end in one way only, so that no text makes a
search look at a character more than a few times. None of a group is possessive, and no group is
atomic: Python before 3.11.5 matches those wrongly.
"""

import re

from .covering import MASK, covered

PEM = re.compile(
    r"(-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----)[^-]*+(?:-(?!----)[^-]*+)*"
    r"(-----END [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----)?"
)
SCHEME = re.compile(
    r"(?<![\w-])(?<!\*{8})"
    r"((?i:bearer)[ ]+|(?i:basic)[ ]+(?=[a-z]*+[0-9A-Z+/=])(?=[\w+/=]{8}))(\S++)"
)
URL = re.compile(r"(?<![a-zA-Z0-9+.-])[a-zA-Z][a-zA-Z0-9+.-]*+://\S++")
TOKEN = re.compile(
    r"""(?<![A-Za-z0-9])(?:
    eyJ[\w-]{8,}+\.[\w-]{4,}+(?:\.[\w-]*+)?   # a JSON Web Token
    | A(?:KIA|SIA)[0-9A-Z]{16}(?![0-9A-Za-z])  # AWS
    | AIza[\w-]{30,}+                          # Google
    | [rs]k_(?:live|test)_[0-9A-Za-z]{8,}+     # Stripe
    | (?:gh[pousr]|github_pat)_\w{20,}+        # GitHub
    | glpat-[\w-]{20,}+                        # GitLab
    | xox[abeoprs]-[\w-]{10,}+                 # Slack
    | sk-[\w-]{20,}+                           # OpenAI and others
    | SG\.[\w-]{10,}+\.[\w-]{10,}+             # SendGrid
    | npm_[0-9A-Za-z]{30,}+
    | pypi-[\w-]{30,}+
    )""",
    re.VERBOSE,
)
LOGIN = re.compile(
    r"""(?<![\w-])(?<!\*{8})
    ( (?: -u | --(?:proxy-)?user ) (?: [ ]{1,9} | = | ["'],[ ]? ) ["']?
      [^\s:"'/]{0,99} : )
    ( (?!\d*+(?:[\s"']|\Z)) [^\s"']++ )        # "-u 1000:1000" are a user and a group
    """,
    re.VERBOSE,
)
"""`curl -u user:password`."""
PROGRAM = re.compile(
    r"""(?<![\w-])(?<!\*{8})
    ( (?: (?:mysql|mariadb)[\w-]*+ | (?P<blank>sshpass) ) ["']?,?
      (?: [ ]++ (?!["']?-p) (?!\S*(?:mysql|mariadb|sshpass)) \S++ )*
      [ ]++ ["']?-p (?(blank) ["']?,?[ ]?["']? ) )
    ( [^\s"']++ )
    """,
    re.VERBOSE,
)
"""`mysql -ppassword`, the one program that is known to take it so, and `sshpass -p password`."""

TRACES = (
    r"eyJ|A[KS]IA|AIza|[rs]k_|gh[pousr]_|github_pat_|glpat-|xox|sk-|SG\.|npm_|pypi-|-----BEGIN "
    r"|(?<!\w)-[pu]|(?i:bearer |basic )"
)
"""Each credential without a colon shows one of these; most log lines do not."""


def keys_covered(text: str) -> str:
    """Return a text with the private keys in it covered; they have many lines."""
    return PEM.sub(lambda key: f"{key[1]}{MASK}{key[2] or ''}", text)


def credentials_covered(text: str) -> str:
    """Return a text with the credentials in it covered, those in URLs among them."""
    text = SCHEME.sub(_second_covered, text)
    if "-u" in text:
        text = LOGIN.sub(_second_covered, text)
    if "-p" in text:
        text = PROGRAM.sub(lambda found: found[1] + covered(found[3]), text)
    if "://" in text:
        text = URL.sub(lambda url: _without_password(url[0]), text)
    return TOKEN.sub(MASK, text)


def _second_covered(found: re.Match[str]) -> str:
    return found[1] + covered(found[2])


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
