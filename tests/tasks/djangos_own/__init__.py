"""Django's own tests of its Tasks framework, pointed at this queue.

`distribution` downloads them, `run` runs them in a process of its own, with the backends that
`standins` puts in the place of Django's, and `test_cases` compares how each case ended with the
exceptions that `docs/tasks-conformance.md` lists.
"""
