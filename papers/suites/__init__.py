"""Suites of the papers that `aoe evaluate` lacks, as tasks for `aoe_train.evaluate`.

| suite | tasks | table |
|---|---|---|
| transfer | MR, CR, SUBJ, MPQA, SST2, TREC, MRPC | AoE 3, AnglE 6 |
| nli | MultiNLI, SNLI, and two small ones | AoE 5 |
| retrieval | Flickr30k | AnglE, "Discussion of Text Retrieval" |
"""

from papers.suites.evaluate import SUITES, Suite, evaluate, find_tasks

__all__ = ["SUITES", "Suite", "evaluate", "find_tasks"]
