"""Django's Tasks on this queue: `@task` functions as job types, jobs as task results.

`api` is the one place that knows where the Tasks framework comes from. A task becomes a handler
(`handler`), a call of it a payload (`call`), a job a result (`results`); `backend` is what
`settings.TASKS` names, by way of `django_jobqueue.backends`. `site` answers whether this site uses
it at all, and is the only module that may be imported where the framework is missing.
"""
