"""Running a transformer over texts that are packed without padding, and quickly so on a CPU.

All texts of a batch stand one after the other in one row of tokens, so that linear layers, norms and
activations never touch a padding token; only attention has to know where a text begins and ends.

Rooms: `sequences` (where texts lie, which are attended to together), `attention`, `layers` (linear, dropout)
over `randomness`, `rows` (embedding rows that training touches), `threads`, and `run` (calling a backbone).
"""
