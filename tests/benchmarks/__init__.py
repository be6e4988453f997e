"""The benchmark: `python -m tests.benchmarks` measures the queue and its peers, and reports."""
