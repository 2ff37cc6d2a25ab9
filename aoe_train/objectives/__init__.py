"""Losses on vectors, and the objective that combines them.

`settings` lists the loss parts and presets, `kinds` checks them against the data (both without torch).
`ranking`, `contrastive` and `distillation` compute the parts on `pairs`, and `objective` sums them, also over
sizes and layers. `losses` offers them to sentence-transformers' Trainer.
"""
