from tests.managers.paths import jobs

__all__ = ["jobs"]
