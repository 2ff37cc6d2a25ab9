"""Training proper: transformers' Trainer around a text model and its objective.

```
trainer ──┬──► pair_model ──► gather        loss inside the wrapped module, over the rows of all ranks
          ├──► ledger                       loss by parts, without a wait at each step
          ├──► divergence                   what tells that a run leads nowhere
          ├──► checkpoints, stopwatch       whole or absent; the time of training alone
          └──► sharding                     a model shared out among the processes, and put together again
arguments, callbacks                        what Trainer is told, and what it tells
```
"""
