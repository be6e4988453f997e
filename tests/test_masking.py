import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_jobqueue.masking import MASK, is_secret, masked, masked_text

SECRET = "hunter2"

SECRET_KEYS = [
    *(
        "password",
        "PASSWORD",
        "passwd",
        "pwd",
        "db_pass",
        "userPassword",
        "dbpassword",
        "password1",
    ),
    *("secret", "client_secret", "clientSecret", "SECRET_KEY", "secrets", "django-secret-key"),
    *("token", "accessToken", "refresh_token", "csrfmiddlewaretoken", "tokens", "token_id"),
    *("api_key", "apikey", "api-key", "APIKey", "x-api-key", "X-Api-Key", "api key", "apiKey2"),
    *("authorization", "Authorization", "Proxy-Authorization", "auth", "bearer", "jwt"),
    *("cookie", "Set-Cookie", "session", "sessionid", "session_id", "credentials", "credential"),
    *("private_key", "privateKey", "access_key", "AWS_SECRET_ACCESS_KEY", "signature", "sig"),
    *("pin", "PIN", "cvv", "cvc", "card_number", "cardNumber", "creditCard", "otp", "passphrase"),
]
PLAIN_KEYS = [
    *(
        "author",
        "authenticated",
        "secretary",
        "monkey",
        "keyboard",
        "key",
        "dedup_key",
        "cache_key",
    ),
    *("passenger", "compass", "spin", "pinned", "signal", "card", "description", "mission", ""),
]

SECRETS_IN_TEXT = [
    "password=hunter2",
    "login(password='hunter2', user='bob')",
    '{"user": "bob", "api_key": "hunter2"}',
    "{'user': {'token': b'hunter2'}}",
    r'"{\"password\": \"hunter2\"}"',
    'password="hunter2',
    'password = """hunter2"""',
    "password: hunter2, tried twice",
    "the api key: hunter2",
    "if password == 'hunter2':",
    "os.environ['SECRET_KEY'] = 'hunter2'",
    "auth=('bob', 'hunter2')",
    '"credentials": {"user": "bob",\n "word": [")hunter2"]}',
    '"credentials": {"user": "bob", "word": "hunter2',
    "Key (org, token)=(1, hunter2) already exists.",
    "GET /reports?page=1&token=hunter2&x=1",
    "Authorization: Bearer hunter2",
    "authorization: Digest username=bob, response=hunter2",
    "Cookie: theme=dark; sessionid=hunter2",
    "curl -H 'X: Bearer hunter2'",
    "Basic aHVudGVyMjpodW50ZXIy hunter".replace("aHVudGVyMjpodW50ZXIy", "hunter2hunter2Q="),
    "postgres://bob:hunter2@db.example.org:5432/site",
    "postgres://bob:hun/hunter2@db.example.org/site",
    "redis://:hunter2@cache/0",
    "https://hunter2@git.example.org/site.git",
    "a://b:hunter2@c,d://e:hunter2@f",
    "-----BEGIN RSA PRIVATE KEY-----\nhunter2\nhunter2\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\nhunter2\nhunt",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJodW50ZXIifQ.hunter2",
    "charged with sk_live_0hunter2hunter2",
    "used ghp_0123456789hunter2hunter2",
]

HARMLESS_TEXT = [
    "ValueError: report 7 has no rows",
    "author: bob, monkey=1, secretary: ann, dedup_key=report:7",
    "max_tokens=500, tokens: 17, session_count=3",
    "password=None, token: null, secret=False",
    "Basic understanding of a bearer",
    "http://127.0.0.1:8000/@bob and ssh://git@example.org/site.git",
    'File "/srv/site/reports/jobs.py", line 7, in build_report',
    "",
]

HOSTILE = [
    *("a", "a ", "a=", "a.", "a b: ", "aA", "{", "[", "\\", '"', "-", " ", "x://", "://a:"),
    *("password=", "password: ", "password=(", "password=[password=", 'password="', "password='\\"),
    *('password="\\\\\\\\\\\\\\', 'token:{"', "bearer ", "basic a", "eyJaaaaaaaa.", "sk-"),
    *("x://a:b@", "https://a@/", "-----BEGIN PRIVATE KEY-----"),
]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(SECRET_KEYS), inner)
    ),
)


def shape(value):
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items() if not is_secret(key)}
    if isinstance(value, list):
        return [shape(item) for item in value]
    return type(value)


@pytest.mark.parametrize("key", SECRET_KEYS)
def test_a_value_under_a_secret_looking_key_is_replaced(key):
    assert masked({key: SECRET, "user": "bob"}) == {key: MASK, "user": "bob"}


@pytest.mark.parametrize("key", PLAIN_KEYS)
def test_a_value_under_another_key_is_shown(key):
    assert masked({key: SECRET}) == {key: SECRET}


@pytest.mark.parametrize(
    ("key", "value"),
    [("max_tokens", 500), ("session_count", 3), ("password", None), ("pin", False)],
)
def test_what_counts_secrets_or_says_that_there_is_none_is_shown(key, value):
    assert masked({key: value}) == {key: value}


@pytest.mark.parametrize("value", [4711, 1.5, "4711", ["a"], {"a": "b"}, ""])
def test_whatever_a_secret_is_it_is_replaced_whole(value):
    assert masked({"pin": value}) == {"pin": MASK}


def test_values_are_masked_however_deep_and_the_original_stays():
    value = leaf = {}
    for _ in range(50_000):
        leaf["next"] = [{}]
        leaf = leaf["next"][0]
    leaf["token"] = SECRET

    copy = masked(value)

    while "next" in copy:
        copy = copy["next"][0]
    assert copy == {"token": MASK}
    assert leaf == {"token": SECRET}


def test_a_value_that_holds_itself_is_copied_as_one():
    value = {"token": SECRET}
    value["self"] = value

    copy = masked(value)

    assert copy["self"] is copy
    assert copy["token"] == MASK


@pytest.mark.parametrize("value", [None, 7, True, 1.5, "text", [], {}])
def test_a_value_without_keys_is_returned_as_it_is(value):
    assert masked(value) == value


def test_strings_inside_a_value_are_masked_as_text():
    assert masked(["postgres://bob:hunter2@db", ("password=hunter2",)]) == [
        f"postgres://bob:{MASK}@db",
        [f"password={MASK}"],
    ]


@given(json_values)
def test_the_shape_of_what_is_not_secret_is_kept(value):
    assert shape(masked(value)) == shape(value)
    assert masked(masked(value)) == masked(value)


@given(json_values, st.sampled_from(SECRET_KEYS))
def test_a_secret_appears_nowhere_in_the_output(value, key):
    nested = {"list": [value, {key: {"inner": SECRET, "more": [value, SECRET]}}]}

    assert SECRET not in json.dumps(masked(nested))


@pytest.mark.parametrize("text", SECRETS_IN_TEXT)
def test_a_secret_in_free_text_is_replaced(text):
    shown = masked_text(text)

    assert SECRET not in shown
    assert MASK in shown
    assert masked_text(shown) == shown


@pytest.mark.parametrize("text", HARMLESS_TEXT)
def test_harmless_text_is_left_as_it_is(text):
    assert masked_text(text) == text


def test_what_is_around_a_secret_is_kept():
    assert masked_text('{"password": "hunter2", "user": "bob"}') == (
        f'{{"password": "{MASK}", "user": "bob"}}'
    )
    assert masked_text("postgres://bob:hunter2@db:5432/site?a=b") == (
        f"postgres://bob:{MASK}@db:5432/site?a=b"
    )
    assert masked_text("login(password=hunter2) failed") == f"login(password={MASK}) failed"


secret_words = st.text(st.characters(categories=["L", "N"]), min_size=5)
separators = st.sampled_from(["=", ": ", " = ", ":", "=>"])
quotes = st.sampled_from(["", "'", '"'])


@given(st.text(), st.sampled_from(SECRET_KEYS), separators, quotes, secret_words, st.text())
def test_no_text_around_a_named_secret_brings_it_out(before, key, separator, quote, word, after):
    secret = f"Zq{word}qZ"

    text = f"{before}\n{key}{separator}{quote}{secret}{quote}\n{after}"

    assert secret not in masked_text(text)


pieces = st.sampled_from(
    [*SECRETS_IN_TEXT, *HARMLESS_TEXT, *SECRET_KEYS, *HOSTILE, "=", ": ", " ", "\n", ",", "@", "/"]
)


@given(st.lists(pieces | st.text(max_size=5)).map("".join))
def test_masking_twice_is_masking_once(text):
    once = masked_text(text)

    assert masked_text(once) == once


@pytest.mark.parametrize("piece", HOSTILE)
def test_no_text_makes_masking_slow(piece):
    def seconds(length):
        text = piece * (length // len(piece))
        begun = time.process_time()
        masked_text(text)
        return time.process_time() - begun

    # A quadratic search would take hours.
    assert seconds(500_000) < 15


def test_a_site_adds_its_own_words(jobqueue):
    text = "iban=DE02 contraseña: hunter2 customerRef=9"
    assert masked_text(text) == text

    jobqueue(MASKED_KEYS=["IBAN", "contraseña", "customer_ref"])

    assert masked_text(text) == f"iban={MASK} contraseña: {MASK} customerRef={MASK}"
    assert masked({"homeIban": "DE02", "customer-ref": 9}) == {
        "homeIban": MASK,
        "customer-ref": MASK,
    }


def test_masking_works_while_the_setting_is_wrong(jobqueue):
    jobqueue(MASKED_KEYS=7)

    assert masked({"password": SECRET, "iban": 1}) == {"password": MASK, "iban": 1}
