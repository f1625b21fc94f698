"""Measurements, one question a file.

``test_*.py`` are micro-benchmarks for pytest-benchmark; the others are evaluations, run as
``python -m bench.NAME --json FILE``, whose common form is in `bench.evaluation`.
"""
