"""Tables and figures of the AnglE and AoE papers, on `aoe_train`'s public API. Not in the wheel."""
