"""`python -m tests.benchmarks.systems.fill MODULE TOTAL`: enqueue no-op jobs with one system."""

import importlib
import os
import sys

if __name__ == "__main__":
    if "DJANGO_SETTINGS_MODULE" in os.environ:
        import django

        django.setup()
    name, total = sys.argv[1:]
    importlib.import_module(f"tests.benchmarks.systems.{name}").fill(int(total))
