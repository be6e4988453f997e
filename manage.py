#!/usr/bin/env python
"""Django's command line for the example project."""

import os
import sys


def main() -> int:
    """Run the command that was asked for; a wrong setting ends it with one line."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "example_project.settings")
    try:
        from django.core.exceptions import ImproperlyConfigured
        from django.core.management import execute_from_command_line
    except ImportError:
        print("Error: Django is not installed; run pip install -e '.[demo]' here.", file=sys.stderr)
        return 1
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        # Some messages of Django span lines.
        print(f"Error: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
