"""Real threads with connections of their own."""

import threading
from concurrent.futures import ThreadPoolExecutor

from django.db import connections

SECONDS = 60


class Meeting(threading.Barrier):
    """Where threads meet; a thread that never comes fails the others instead of hanging them."""

    def __init__(self, parties):
        super().__init__(parties, timeout=SECONDS)


def together(*functions):
    """Run the functions at once, a thread each, and return their results in order.

    The first error of a thread is raised once all of them have ended.
    """
    start = Meeting(len(functions))

    def run(function):
        try:
            start.wait()
            return function()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(functions)) as pool:
        futures = [pool.submit(run, function) for function in functions]
    return [future.result() for future in futures]
