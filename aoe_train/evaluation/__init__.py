"""Evaluation of any embeddings: tasks, metrics with bootstrap intervals, and the dev metric of a training."""
