"""The suites, each a family of tasks of one kind."""

from __future__ import annotations

from collections.abc import Callable

from aoe_train._evaluate.suites.gis import Gis
from aoe_train._evaluate.suites.nli import Nli
from aoe_train._evaluate.suites.retrieval import Retrieval
from aoe_train._evaluate.suites.sts import Sts
from aoe_train._evaluate.suites.transfer import Transfer
from aoe_train._evaluate.tasks import Suite

SUITES: dict[str, Callable[[], Suite]] = {
    "sts": Sts,
    "transfer": Transfer,
    "nli": Nli,
    "retrieval": Retrieval,
    "gis": Gis,
}
"""By the name that `aoe evaluate --suite` takes, in the order of `--suite all`."""
