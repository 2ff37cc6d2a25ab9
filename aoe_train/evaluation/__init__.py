"""Scores of embeddings: tasks, their metrics with bootstrap intervals, and the dev metric of a training run.

Whatever turns texts into vectors can be evaluated, `Encoder.encode` or another.
"""
