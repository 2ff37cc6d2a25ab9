"""What training minimises: pure losses on vectors, and the `Objective` that mixes them.

```
matryoshka ──► objective (weighted sum), or own     at several sizes of the vectors, and layers of the model
objective  ──► kinds ──► settings ──► parts         what is wanted, and if the data can give it (no torch)
  └──► ranking, contrastive, sbert, distillation    one file a family of losses: formula, source, maths
                └──► similarity, pairs
losses ──► objective                                the same for sentence-transformers' Trainer
```
"""
