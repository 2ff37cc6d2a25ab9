"""The papers' tables, run again: a recipe names data, rows and figures, and each row is trained and scored.

```
recipe   what a TOML file says            plan     which runs that makes at a scale
material the data that they train on      run      one of them: train, score, write its record
table    all records beside the papers' figures
```
"""
