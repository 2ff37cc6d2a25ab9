"""`python -m aoe_train` is `aoe`; so `torchrun -m aoe_train train …` trains in several processes."""

from aoe_train.cli import main

main()
