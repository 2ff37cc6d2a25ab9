"""What training minimises: pure losses on vectors, and the `Objective` that mixes them.

```
mix ──► kinds ──► settings          what is wanted, and whether the data can give it (no torch)
 └────► ranking, similarity, contrastive, sbert, pairs          the losses
```
"""
