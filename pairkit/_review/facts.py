"""What is known of each pair: the facts that strata and the report's tables go by, and where it is from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pairkit.strata import judges_agree

FACTS = ("label", "evidence", "llm", "confidence", "judges", "relation", "source", "split")
"""Their names; the first are the first by which a sample is divided, as far as it is large enough."""
_SOURCES = ("repo", "project", "system", "source", "genre")
_BANDS = (0.5, 0.7, 0.8, 0.9, 0.95)  # of confidence
_TOLD = (
    *("relation", "reason", "confidence", "url1", "url2", "repo", "number1", "number2", "negative_kind"),
    *("polarity", "strategy", "task"),
)


def facts_of(row: Mapping[str, Any], *, top: float) -> dict[str, str]:
    """What is known of a row, by the names of `FACTS`; what the dataset does not tell is left out.

    Args:
        row: A row with its `split`, of `pairkit.provenance.with_provenance`.
        top: The highest label of its scale.
    """
    evidence, votes = row.get("evidence"), row.get("votes")
    kind = evidence.get("kind") if isinstance(evidence, Mapping) else None
    known = {
        "label": label_band(row["label"], top),
        "evidence": kind or (f"{row['negative_kind']} negative" if row.get("negative_kind") else None),
        "llm": _names(row.get("llms")),
        "confidence": _band(row.get("confidence")),
        "judges": judges_agree(votes) if isinstance(votes, list) else None,
        "relation": row.get("relation"),
        "source": next((row[name] for name in _SOURCES if isinstance(row.get(name), str)), None),
        "split": row["split"],
    }
    return {name: str(value) for name, value in known.items() if value is not None}


def label_band(label: float, top: float) -> str:
    """A label as a stratum: 0 or 1, or of scores the whole grade, of 0 to 5, that is nearest."""
    return f"{label:g}" if label in (0, 1) and top == 1 else f"grade {round(5 * label / top)}"


def _band(confidence: object) -> str | None:
    if not isinstance(confidence, float):
        return None
    above = [bound for bound in _BANDS if confidence >= bound]
    return f"from {above[-1]:g} on" if above else f"below {_BANDS[0]:g}"


def _names(llms: object) -> str | None:
    if isinstance(llms, list):
        return " + ".join(sorted(map(str, llms))) or None
    return llms if isinstance(llms, str) and llms else None


def origin_of(row: Mapping[str, Any]) -> dict[str, str]:
    """Where a row is from, to be shown once it was judged; links among it are no more than texts here."""
    told: dict[str, str] = {}
    if isinstance(evidence := row.get("evidence"), Mapping):
        told |= {f"evidence {name}": str(value) for name, value in evidence.items() if value is not None}
    told |= {name: str(row[name]) for name in _TOLD if row.get(name) is not None}
    if llms := _names(row.get("llms")):
        told["llms"] = llms
    if isinstance(votes := row.get("votes"), list):
        told["votes"] = ", ".join(f"{vote['judge']}: {vote['vote']}" for vote in votes)
    return told


def doubt(row: Mapping[str, Any], column: str, top: float) -> float | None:
    """How doubtful a row is by a column, from 0 on: how far judges' votes or a model's score contradict it.

    Votes are a list of structures with the field `vote`; a score is a number from 0 to 1, 1 for the same.
    None where the row tells nothing.
    """
    value = row.get(column)
    if isinstance(value, list) and value and isinstance(value[0], Mapping) and "vote" in value[0]:
        votes = [vote["vote"] for vote in value]
        return 1 - max(map(votes.count, votes)) / len(votes)
    if isinstance(value, int | float) and value == value:  # not NaN
        return abs(float(row["label"]) / top - value)
    return None
