"""The training loop: a text model and its objective, on accelerate.

```
trainer ──┬──► pair_model ──► gather        loss inside the wrapped module, over the rows of all ranks
          ├──► optimiser                    accelerate, the optimiser and its schedule
          ├──► loss_log                     the loss by parts, without a wait at each step
          ├──► divergence                   signs that a run leads nowhere
          ├──► checkpoints, states          whole or absent; the newest is enough to go on from
          ├──► average                      the mean of the weights, and its mix with the backbone's
          ├──► reports                      TensorBoard and others
          └──► sharding                     a model shared out among processes, and put together again
arguments, callbacks                        settings as TrainingArguments; clock, checkpoints, stops, progress
```
"""
