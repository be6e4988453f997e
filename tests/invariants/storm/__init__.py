"""An app that only the workers of `test_under_speed` install: handlers that end at random."""
