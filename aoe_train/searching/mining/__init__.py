"""Hard negatives for a dataset of positives.

```
settings ─► dataset ► known_positives ► rank (texts in, nearest candidates out) ► mine ► run (n-tuples out)
```
"""
