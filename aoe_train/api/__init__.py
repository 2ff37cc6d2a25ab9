"""The public functions of `aoe_train` and their results; the commands of `aoe` only call these functions."""
