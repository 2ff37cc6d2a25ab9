"""Training proper: transformers' Trainer around a text model and its objective.

```
trainer ──┬──► pair_model ──► gather        loss inside the wrapped module, over the rows of all ranks
          ├──► ledger                       loss by parts, without a wait at each step
          ├──► divergence                   what tells that a run leads nowhere
          ├──► checkpoints, resume          whole or absent; one to go on from, looked at first
          ├──► average ──► soup             the mean of the weights; these mixed with the backbone's
          ├──► stopwatch                    the time of training alone
          ├──► reports                      where a run also reports to
          └──► sharding                     a model shared out among the processes, and put together again
arguments, callbacks                        what Trainer is told, and what it tells
```
"""
