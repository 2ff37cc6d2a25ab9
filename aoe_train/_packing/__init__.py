"""Running a transformer over texts that are packed without padding, and quickly so on a CPU.

All texts of a batch stand one after the other in one row of tokens, so that linear layers, norms and
activations never touch a padding token; only attention has to know where a text begins and ends.

Rooms: `sequences` (where texts lie, which are attended to together), `attention`, `layers` (linear, dropout)
over `randomness`, `int8` (linear layers for encoding only), `rows` (embedding rows that training touches),
`flash` (attention on a GPU), `threads`, `kernels` (how many are kept), `compiling` (what torch.compile leaves
alone), `transfer` (to the device and back), and `run` (calling a backbone).
"""

from aoe_train._packing.kernels import keep_few

keep_few()  # before anything is multiplied
