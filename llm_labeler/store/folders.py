"""What made a dataset, and whether its folder may be replaced."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from llm_labeler.settings.labelling import LabelSettings
from pairkit import __version__
from pairkit.app.errors import ConfigError
from pairkit.system.folders import made_there

_COMMAND = "label"
# Settings that bear on one task alone: elsewhere nothing is said of them, as they change nothing.
_OF_TRIPLETS = (("prompt", "changes"), ("filters", "min_kept"))


def run_record(
    settings: LabelSettings,
    *,
    parameters: Mapping[str, str],
    prompts: Mapping[str, str],
    source: str,
    sha256: str,
) -> dict[str, Any]:
    """What made a dataset, for run.json: nothing that differs from one run to the next, and no credential."""
    kept = settings.model_dump(mode="json", exclude={"llm", "budget", "breaker", "local_only"})
    of_triplets = _OF_TRIPLETS if settings.task != "triplet" else ()
    for section, name in of_triplets:
        del kept[section][name]
    kept["llms"] = [*settings.proposers]
    kept["prompt"]["template"] = Path(settings.prompt.template).name
    # What is not used is not said, so that a dataset that was made before it was there is still the same.
    if settings.samples == 1:
        del kept["samples"]
    if settings.input.draw is None:
        del kept["input"]["draw"]
    if settings.prompt.examples is None:
        del kept["prompt"]["examples"]
    else:
        kept["prompt"]["examples"] = settings.prompt.examples.name
    return {
        "made_by": f"{_COMMAND} (aoe-toolkit {__version__})",
        "settings": kept,
        "llms": {
            name: {
                "kind": settings.llm[name].kind,
                "model": settings.llm[name].model,
                "parameters": json.loads(text),
            }
            for name, text in sorted(parameters.items())
        },
        "prompts": dict(prompts),
        "input": {"name": source, "sha256": sha256},
    }


def check_out(out: Path, run: Mapping[str, Any], *, fresh: bool) -> None:
    """Refuse an output folder that holds what a run must not replace.

    A dataset made of the same input, settings and LLMs is not refused: what replaces it is the same, or more
    of it.
    """
    there = made_there(out, _COMMAND, "input")
    if there is not None and not fresh and _made_of(there) != _made_of(run):
        raise ConfigError(
            f"{out}: holds a dataset made from another input, or with other settings or LLMs; give fresh"
            " (--fresh) to replace it, or another out (--out)"
        )


def _made_of(run: Mapping[str, Any]) -> tuple[Any, ...]:
    """What makes two datasets the same; the input's name does not, and a newer toolkit may fix one."""
    return run["input"].get("sha256"), run.get("settings"), run.get("llms"), run.get("prompts")
