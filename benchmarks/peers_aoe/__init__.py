"""Scripts that run in the Python of each library, and what the training and encoding benchmarks share.

`train_*.py`, `encode_*.py` and `peak.py` run as processes, each with the interpreter of its library. They
read a job (a JSON file), print one line of JSON, and share only `runner.py` and `score.py`.
`environments.py`, `texts.py` and `flops.py` are for the scripts that start them.
"""
