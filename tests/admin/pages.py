"""What a browser does with the admin's pages: read addresses, forms and messages out of them."""

from html.parser import HTMLParser

from django.contrib.messages import get_messages
from django.db import connection
from django.urls import reverse


def address(name, *args):
    return reverse(f"admin:django_jobqueue_{name}", args=args)


def messages_of(response):
    """Return the messages that a response left, as texts."""
    return [str(message) for message in get_messages(response.wsgi_request)]


def store_deep_payload(model, pk):
    """Store a payload that Python's JSON does not read or write, as only SQL can."""
    levels = 2_000 if connection.vendor == "postgresql" else 900
    text = '{"a": ' + "[" * levels + "]" * levels + "}"
    pk = pk if connection.vendor == "postgresql" or isinstance(pk, int) else pk.hex
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE django_jobqueue_{model} SET payload = %s WHERE id = %s",
            [text, pk],
        )
        assert cursor.rowcount == 1


class Forms(HTMLParser):
    """Collects the forms of a page: their address, their hidden fields and their buttons."""

    def __init__(self):
        super().__init__()
        self.forms = []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "form":
            self.forms.append({"action": attrs.get("action"), "fields": []})
        elif self.forms and attrs.get("name") and tag in {"input", "button"}:
            self.forms[-1]["fields"].append((attrs["name"], attrs.get("value", "")))


def form_with(response, field):
    """Return the address and the data of the form that has a field of that name."""
    parser = Forms()
    parser.feed(response.text)
    [form] = [form for form in parser.forms if field in dict(form["fields"])]
    data = {}
    for name, value in form["fields"]:
        data.setdefault(name, []).append(value)
    here = response.wsgi_request.get_full_path()
    return form["action"] or here, data


def confirm(client, response):
    """Press the button of a page of confirmation."""
    url, data = form_with(response, "confirmed")
    return client.post(url, data)
