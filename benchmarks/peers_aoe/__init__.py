"""What the training and encoding benchmarks share, and the small scripts that a peer's own Python runs.

`train_*.py`, `encode_*.py` and `peak.py` are started as processes, each with the interpreter of the library
that it names. They read a job (a JSON file) and end with one line of JSON; `runner.py` and `score.py` are
all they share. `environments.py`, `texts.py` and `flops.py` belong to the side that starts them.
"""
