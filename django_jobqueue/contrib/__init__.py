"""Adapters to other packages, each imported by name only where that package is installed."""
