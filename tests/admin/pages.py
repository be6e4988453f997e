"""What a browser does with the admin's pages: read addresses, forms and messages out of them."""

from html.parser import HTMLParser

from django.contrib.messages import get_messages
from django.urls import reverse


def address(name, *args):
    return reverse(f"admin:django_jobqueue_{name}", args=args)


def messages_of(response):
    """Return the messages that a response left, as texts."""
    return [str(message) for message in get_messages(response.wsgi_request)]


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
