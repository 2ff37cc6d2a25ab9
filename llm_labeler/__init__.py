"""Make pairs of sentences with the same and with opposite meaning from unlabelled text, with or without LLMs.

Example:
    >>> import llm_labeler
    >>> result = llm_labeler.generate("sentences.txt", llm="wordnet", progress=False)  # or llm="chatgpt"
    >>> result.pairs.splits["train"].columns[:3]
    ['text1', 'text2', 'label']
    >>> llm_labeler.report(result.work).llms["wordnet"].answers
    8
"""

from pairkit.base.cli.startup import lazy_names

_PUBLIC_NAMES = {
    "llm_labeler.api": "evaluate generate judge llms parse plan report show",
    "llm_labeler.clients.llms": "Llm Llms",
    "llm_labeler.judging.scoring": "ScoreReport ScoreRow",
    "llm_labeler.records": "CallFailed",
    "llm_labeler.runs.run_result": "Estimate Labelled Plan",
    "llm_labeler.runs.judge_pairs": "JudgedPairs",
    "llm_labeler.runs.run_report": "Report Shown Yield",
}
__getattr__, __dir__, __all__ = lazy_names(__name__, _PUBLIC_NAMES)
