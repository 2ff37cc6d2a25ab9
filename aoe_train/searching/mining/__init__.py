"""Hard negatives for positives: `mined_dataset` > `negative_mining` > `mining_run`."""
