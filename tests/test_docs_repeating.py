"""The examples of the at-least-once page, each run twice, or cut short and run again."""

import sys
import threading
from datetime import UTC, datetime, timedelta
from types import ModuleType, SimpleNamespace
from uuid import uuid4

import pytest
from django.db import connection, connections
from django.test.utils import isolate_apps

from django_jobqueue import registry
from django_jobqueue.models import Job
from tests.pages import example

PAGE = "at-least-once.md"
LEASE = timedelta(minutes=1)

pytestmark = pytest.mark.django_db(transaction=True)


class PowerCut(BaseException):
    """The process ends here."""


class Bank:
    """A provider that answers a repeated key as it answered it first."""

    def __init__(self):
        self.charged = []
        self._receipts = {}

    def charge(self, amount, *, idempotency_key):
        if idempotency_key not in self._receipts:
            self.charged.append(amount)
            self._receipts[idempotency_key] = f"receipt-{len(self.charged)}"
        return self._receipts[idempotency_key]


class Post:
    def __init__(self):
        self.sent = []
        self.cut = False

    def send(self, recipient):
        self.sent.append(recipient)
        if self.cut:
            raise PowerCut


@pytest.fixture
def shop(monkeypatch):
    """The app of the page: its models as tables, its modules to import."""
    monkeypatch.setattr(registry, "_handlers", {})
    bank, post = Bank(), Post()
    add_module(monkeypatch, "shop")
    add_module(monkeypatch, "shop.bank", charge=bank.charge)
    add_module(monkeypatch, "shop.post", send=post.send)
    with isolate_apps("tests.testapp"):
        models = load(monkeypatch, "models", __name__="tests.testapp.shop")
        tables = [models.Order, models.DailySales, models.Outbox]
        with connection.schema_editor() as editor:
            for table in tables:
                editor.create_model(table)
        try:
            yield SimpleNamespace(
                bank=bank,
                post=post,
                models=models,
                load=lambda name: load(monkeypatch, name),
            )
        finally:
            with connection.schema_editor() as editor:
                for table in tables:
                    editor.delete_model(table)


def add_module(monkeypatch, name, **members):
    module = ModuleType(name)
    vars(module).update(members)
    monkeypatch.setitem(sys.modules, name, module)
    return module


def load(monkeypatch, name, **members):
    """Run a module of the page."""
    module = add_module(monkeypatch, f"shop.{name}", **members)
    exec(example(PAGE, f"shop/{name}.py"), vars(module))  # the page is ours
    return module


def claimed(job_type, payload):
    """Return a job that runs."""
    job = Job.objects.enqueue(job_type, payload)
    [claimed] = Job.objects.claim([uuid4()], {job_type: LEASE})
    assert claimed.pk == job.pk
    return claimed


def test_a_repeated_charge_carries_the_same_key(shop):
    order = shop.models.Order.objects.create(total=70)
    charge_order = shop.load("charge").charge_order
    job = claimed("shop.charge", {"order": order.pk})

    answers = [charge_order(job), charge_order(job)]

    assert answers == [{"charge": "receipt-1"}] * 2
    assert shop.bank.charged == [70]
    order.refresh_from_db()
    assert order.charge_id == "receipt-1"


def test_a_repeated_sum_is_the_same_sum(shop):
    paid_at = datetime(2026, 3, 1, 12, tzinfo=UTC)
    for total in (30, 40):
        shop.models.Order.objects.create(total=total, paid_at=paid_at)
    sum_up = shop.load("sales").sum_up
    job = claimed("shop.daily-sales", {"day": "2026-03-01"})

    answers = [sum_up(job), sum_up(job)]

    assert answers == [{"total": 70}] * 2
    assert [row.total for row in shop.models.DailySales.objects.all()] == [70]


def test_a_second_run_finds_the_order_paid_and_enqueues_nothing(shop):
    order = shop.models.Order.objects.create(total=70)
    mark_paid = shop.load("pay").mark_paid
    job = claimed("shop.pay", {"order": order.pk})

    answers = [mark_paid(job), mark_paid(job)]

    assert answers == [{"already": False}, {"already": True}]
    assert Job.objects.filter(type="shop.receipt").count() == 1


def test_of_two_runs_at_a_time_one_pays(shop):
    order = shop.models.Order.objects.create(total=70)
    mark_paid = shop.load("pay").mark_paid
    job = claimed("shop.pay", {"order": order.pk})
    together = threading.Barrier(2)
    answers = []

    def run():
        try:
            together.wait(30)
            answers.append(mark_paid(job)["already"])
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert sorted(answers) == [False, True]
    assert Job.objects.filter(type="shop.receipt").count() == 1


def test_a_mail_is_written_and_sent_once(shop):
    mail = shop.load("mail")
    for _ in range(2):
        mail.write_mail("order-7", "ann@example.com")
    [job] = Job.objects.filter(type="shop.deliver")

    mail.deliver(job)
    mail.deliver(job)

    assert shop.post.sent == ["ann@example.com"]


def test_the_gap_that_an_outbox_leaves_is_the_one_the_page_names(shop):
    mail = shop.load("mail")
    mail.write_mail("order-7", "ann@example.com")
    [job] = Job.objects.filter(type="shop.deliver")
    shop.post.cut = True
    with pytest.raises(PowerCut):
        mail.deliver(job)
    shop.post.cut = False

    mail.deliver(job)

    assert len(shop.post.sent) == 2


def test_a_run_that_lost_its_claim_writes_nothing(shop):
    order = shop.models.Order.objects.create(total=0)
    import_total = shop.load("totals").import_total
    stale = claimed("shop.import", {"order": order.pk, "lines": [30, 40]})
    Job.objects.filter(pk=stale.pk).update(lease_expires_at=Job.objects.now() - LEASE)
    Job.objects.reap(LEASE, 3)

    assert import_total(stale) is None
    order.refresh_from_db()
    assert order.total == 0

    [held] = Job.objects.claim([uuid4()], {"shop.import": LEASE})
    assert import_total(held) == {"total": 70}
    order.refresh_from_db()
    assert order.total == 70
