"""Pairs of sentences with the same and with opposite meaning, from unlabelled text, with LLMs or without.

Example:
    >>> import llm_labeler
    >>> made = llm_labeler.generate("sentences.txt", llms="wordnet", progress=False)  # or chatgpt, a server
    >>> made.pairs.splits["train"].columns[:3]
    ['text1', 'text2', 'label']
    >>> llm_labeler.report(made.work).llms["wordnet"].answers
    8
"""

from typing import TYPE_CHECKING

from pairkit.face import lazy_names

if TYPE_CHECKING:
    from llm_labeler._ensemble import Proposed as Proposed
    from llm_labeler._face import (
        generate as generate,
    )
    from llm_labeler._face import (
        judge as judge,
    )
    from llm_labeler._face import (
        llms as llms,
    )
    from llm_labeler._face import (
        parse as parse,
    )
    from llm_labeler._face import (
        plan as plan,
    )
    from llm_labeler._face import (
        report as report,
    )
    from llm_labeler._face import (
        score as score,
    )
    from llm_labeler._face import (
        show as show,
    )
    from llm_labeler._judged_pairs import JudgedPairs as JudgedPairs
    from llm_labeler._labelled import Labelled as Labelled
    from llm_labeler._llms import Llm as Llm
    from llm_labeler._llms import Llms as Llms
    from llm_labeler._plan import Estimate as Estimate
    from llm_labeler._plan import Plan as Plan
    from llm_labeler._provider import CallFailed as CallFailed
    from llm_labeler._report import Report as Report
    from llm_labeler._report import Yield as Yield
    from llm_labeler._score import ScoreReport as ScoreReport
    from llm_labeler._score import ScoreRow as ScoreRow
    from llm_labeler._show import Shown as Shown

_PLACES = {
    **dict.fromkeys(
        (
            *("generate", "judge", "llms", "parse", "plan"),
            *("report", "score", "show"),
        ),
        "_face",
    ),
    "JudgedPairs": "_judged_pairs",
    "Labelled": "_labelled",
    "Llm": "_llms",
    "Llms": "_llms",
    "Estimate": "_plan",
    "Plan": "_plan",
    "Report": "_report",
    "Yield": "_report",
    "ScoreReport": "_score",
    "ScoreRow": "_score",
    "Shown": "_show",
    "CallFailed": "_provider",
    "Proposed": "_ensemble",
}
__all__ = [  # noqa: RUF022 - functions, then what they give and take
    "generate",
    "judge",
    "llms",
    "parse",
    "plan",
    "report",
    "score",
    "show",
    "CallFailed",
    "Estimate",
    "JudgedPairs",
    "Labelled",
    "Llm",
    "Llms",
    "Plan",
    "Proposed",
    "Report",
    "ScoreReport",
    "ScoreRow",
    "Shown",
    "Yield",
]
__getattr__, __dir__ = lazy_names(__name__, {name: f"{__name__}.{place}" for name, place in _PLACES.items()})
