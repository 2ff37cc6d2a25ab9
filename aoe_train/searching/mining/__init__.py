"""Mines hard negatives (`mined_dataset` ► `negative_mining` ► `mining_run`), and samples pairs to judge."""
