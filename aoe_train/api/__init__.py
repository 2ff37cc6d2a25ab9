"""The functions that `aoe_train` offers, and what they return; the commands of `aoe` call no others."""
