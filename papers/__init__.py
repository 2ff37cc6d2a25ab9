"""What only a table of the AnglE and AoE papers needs, on the public API of `aoe_train`. Not in the wheel."""
