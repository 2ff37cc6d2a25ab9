"""The search for settings, on held-out rows.

```
space (what may differ) ─►  study (Optuna: what next, what to give up) ─►  tune ─► trial (a run of `_train`)
                                                                            └─► write (best.toml, a figure)
```
"""

from aoe_train._tune.tune import Search, tune

__all__ = ["Search", "tune"]
