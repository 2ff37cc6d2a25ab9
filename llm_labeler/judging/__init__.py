"""Judging: LLMs vote on candidates without seeing proposer and polarity, and the votes become labels."""
