"""Losses on vectors, and the objective that combines them.

`objective_settings` lists the loss parts and presets, `objective_checks` checks them against the data (both
without torch). `labelled_pairs`, `contrastive` and `distillation` compute the parts on pairs, and `objective`
sums them, also over sizes and layers. `losses` offers them to sentence-transformers' Trainer.
"""
