"""Make pairs of sentences with the same and with opposite meaning from unlabelled text, with or without LLMs.

Example:
    >>> import llm_labeler
    >>> result = llm_labeler.generate("sentences.txt", llm="wordnet", progress=False)  # or llm="chatgpt"
    >>> result.pairs.splits["train"].columns[:3]
    ['text1', 'text2', 'label']
    >>> llm_labeler.report(result.work).llms["wordnet"].answers
    8
"""

from typing import TYPE_CHECKING

from pairkit.base.cli.startup import lazy_names

if TYPE_CHECKING:
    from llm_labeler.api import evaluate as evaluate
    from llm_labeler.api import generate as generate
    from llm_labeler.api import judge as judge
    from llm_labeler.api import llms as llms
    from llm_labeler.api import parse as parse
    from llm_labeler.api import plan as plan
    from llm_labeler.api import report as report
    from llm_labeler.api import show as show
    from llm_labeler.clients.llms import Llm as Llm
    from llm_labeler.clients.llms import Llms as Llms
    from llm_labeler.judging.scoring import ScoreReport as ScoreReport
    from llm_labeler.judging.scoring import ScoreRow as ScoreRow
    from llm_labeler.records import CallFailed as CallFailed
    from llm_labeler.runs.assemble import Labelled as Labelled
    from llm_labeler.runs.judge_pairs import JudgedPairs as JudgedPairs
    from llm_labeler.runs.label_plan import Estimate as Estimate
    from llm_labeler.runs.label_plan import Plan as Plan
    from llm_labeler.runs.run_report import Report as Report
    from llm_labeler.runs.run_report import Shown as Shown
    from llm_labeler.runs.run_report import Yield as Yield

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "llm_labeler.api": "evaluate generate judge llms parse plan report show",
        "llm_labeler.clients.llms": "Llm Llms",
        "llm_labeler.judging.scoring": "ScoreReport ScoreRow",
        "llm_labeler.records": "CallFailed",
        "llm_labeler.runs.assemble": "Labelled",
        "llm_labeler.runs.judge_pairs": "JudgedPairs",
        "llm_labeler.runs.label_plan": "Estimate Plan",
        "llm_labeler.runs.run_report": "Report Shown Yield",
    },
)
