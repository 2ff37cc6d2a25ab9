"""What training minimises: pure losses on vectors, and the `Objective` that mixes them.

```
sizes ──► own, or mix                    the objective at several sizes of the vectors
  └─────► layers, compress               of earlier layers too; the first numbers drawn to what all say
mix ──► kinds ──► settings ──► parts     what is wanted, and whether the data can give it (no torch)
 └────► ranking, contrastive (with a guide), sbert, distillation ──► similarity, pairs
                                         the losses, by the table in parts
own                                      a loss of a user's own instead
```
"""
