import pytest

from django_jobqueue import registry
from django_jobqueue.models import Job
from django_jobqueue.worker import Pool, learner
from tests.processes import eventually

HIDDEN = "tests.taskapp.elsewhere.hidden"


@pytest.mark.django_db(transaction=True)
def test_a_worker_looks_again_and_again(monkeypatch):
    """Its connection is closed between two looks."""
    monkeypatch.setattr(learner, "LOOK_SECONDS", 0.2)
    looks = []
    look = learner.Learner._look
    monkeypatch.setattr(learner.Learner, "_look", lambda self: looks.append(1) or look(self))
    pool = Pool(1)
    pool.start()
    try:
        eventually(lambda: len(looks) > 2, "it looks no second time")
        assert registry.get(HIDDEN) is None
        call = {"args": [21], "kwargs": {}, "backend": "default"}
        job = Job.objects.enqueue(HIDDEN, call)
        eventually(lambda: Job.objects.filter(pk=job.pk, result=42).exists(), "it does not run")
    finally:
        pool.stop(10)
    assert pool.died() == []
