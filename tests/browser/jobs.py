"""Handlers of the scene's types, so that the served sites know their labels. None ever runs."""

from django_jobqueue import job_handler

LABELS = {
    "reports.build": "Build a report",
    "mail.send": "Send a mail",
    "images.resize": "Resize an image",
    "billing.sync": "Send an invoice",
}


def nothing(job):
    return None


for name, label in LABELS.items():
    job_handler(name, label=label)(nothing)
