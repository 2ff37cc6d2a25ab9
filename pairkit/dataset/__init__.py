"""Pair datasets: read, check, divide and write."""
