"""A task that lies in no `tasks` module."""

from tests.taskapp.framework import task


@task
def hidden(one):
    return one * 2


NOT_A_TASK = 3
