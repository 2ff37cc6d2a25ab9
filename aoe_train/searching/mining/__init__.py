"""Hard negatives for a dataset of positives.

```
settings ─┐
material (rows in) ► known ─┬─► rank (texts in, nearest candidates out) ► choose ► mine ► write (n-tuples out)
                            └─► embed (texts in, vectors on disk out)
```
"""
