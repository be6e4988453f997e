"""Exceptions that look like those of well-known libraries: the same attributes, no more."""

import io
import urllib.error
from collections.abc import MutableMapping
from email.message import Message


def error(name="SomeError", **attributes):
    """An exception of a class `name` with attributes."""
    made = type(name, (Exception,), {})("as asked")
    for key, value in attributes.items():
        setattr(made, key, value)
    return made


class Response:
    """Of requests, httpx and Django: falsy when it tells of an error, as in requests."""

    def __init__(self, status_code, headers):
        self.status_code = status_code
        self.headers = headers

    def __bool__(self):
        return self.status_code < 400


class Headers(MutableMapping):
    """Of httpx and aiohttp: finds a name in any case, lists it as it came."""

    def __init__(self, *pairs):
        self.pairs = list(pairs)

    def __getitem__(self, name):
        for key, value in self.pairs:
            if key.lower() == name.lower():
                return value
        raise KeyError(name)

    def __iter__(self):
        return (key for key, _ in self.pairs)

    def __len__(self):
        return len(self.pairs)

    def __setitem__(self, name, value):
        self.pairs.append((name, value))

    def __delitem__(self, name):
        raise NotImplementedError


def requests_like(status, **headers):
    return error("HTTPError", response=Response(status, headers), request=None, errno=None)


def httpx_like(status, *pairs):
    """`request` of httpx raises when none is set."""

    class HTTPStatusError(Exception):
        response = Response(status, Headers(*pairs))

        @property
        def request(self):
            raise RuntimeError("The .request property has not been set.")

    return HTTPStatusError("as asked")


def aiohttp_like(status, *pairs):
    return error(
        "ClientResponseError", status=status, message="", headers=Headers(*pairs), history=()
    )


def openai_like(status, *pairs, code=None):
    response = Response(status, Headers(*pairs))
    return error("APIStatusError", status_code=status, response=response, body={}, code=code)


def botocore_like(status, code, **headers):
    return error(
        "ClientError",
        response={
            "Error": {"Code": code, "Message": "as asked"},
            "ResponseMetadata": {
                "HTTPStatusCode": status,
                "HTTPHeaders": headers,
                "RetryAttempts": 4,
            },
        },
        operation_name="PutItem",
    )


def urllib_real(status, **headers):
    """The real thing; its body is closed, as after reading it."""
    message = Message()
    for name, value in headers.items():
        message[name.replace("_", "-")] = value
    made = urllib.error.HTTPError("https://provider.example/", status, "as", message, io.BytesIO())
    made.close()
    return made
