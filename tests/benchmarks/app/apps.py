from django.apps import AppConfig


class BenchmarkApp(AppConfig):
    name = "tests.benchmarks.app"
    label = "benchmark_app"
    default_auto_field = "django.db.models.BigAutoField"
