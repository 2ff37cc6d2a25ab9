"""What a search leaves: settings to train with, its record, and a picture."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aoe_train._figures.style import COLOURS, GREY, WIDTH, paper_style, write_figure
from pairkit.errors import ConfigError
from pairkit.files import whole_folder, write_json, write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OURS = {"best.toml", "run.json", "trials.png", "trials.svg"}


def write_search(out: Path, record: Mapping[str, Any]) -> None:
    """Put the folder in place; without matplotlib it has no picture."""
    with whole_folder(out) as folder:
        write_text(folder / "best.toml", best_toml(record))
        write_json(folder / "run.json", record)
        try:
            with paper_style():
                write_figure(draw_trials(record), folder, "trials")
        except ConfigError:  # matplotlib is not installed
            return


def best_toml(record: Mapping[str, Any]) -> str:
    """The best settings as `aoe train --config` takes them."""
    best, metric = record["best"], record["metric"]
    spread = "" if best["deviation"] is None else f", deviation {best['deviation']:.4f}"
    told = f"# {metric} on held-out rows {best['mean']:.4f} over {len(best['dev'])} seeds{spread}\n"
    return told + "\n".join(_lines(record["settings"])) + "\n"


def draw_trials(record: Mapping[str, Any]) -> Figure:
    """The figure of each trial, and the best so far; without training, and without flags, as lines."""
    from matplotlib.figure import Figure

    trials = [trial for trial in record["trials"] if trial["seed"] == record["trials"][0]["seed"]]
    figure = Figure(figsize=(WIDTH, 2.6), layout="constrained")
    axes = figure.add_subplot()
    for state, marker, colour in (("done", "o", COLOURS[0]), ("pruned", "x", GREY)):
        found = [(t["number"], t["dev"]) for t in trials if t["state"] == state and t["dev"] is not None]
        if found:
            axes.plot(*zip(*found, strict=True), marker, color=colour, markersize=3.5, label=state)
    failed = [t["number"] for t in trials if t["state"] == "failed"]
    if failed:
        low = axes.get_ylim()[0]
        axes.plot(failed, [low] * len(failed), "v", color=COLOURS[1], markersize=3.5, label="failed")
    done = [t for t in trials if t["state"] == "done"]
    best = [*accumulate((t["dev"] for t in done), max)]
    axes.step([t["number"] for t in done], best, where="post", color=COLOURS[0], label="best so far")
    axes.axhline(record["untrained"], color=GREY, linestyle=":", label="before training")
    axes.axhline(trials[0]["dev"], color=COLOURS[2], linestyle="--", label="without flags")
    axes.set_xlabel("trial")
    axes.set_ylabel(f"{record['metric']} on held-out rows")
    axes.legend(loc="best")
    return figure


def _lines(tree: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """Values first, then tables, as TOML wants them."""
    tables = {key: value for key, value in tree.items() if isinstance(value, Mapping)}
    for key, value in tree.items():
        if key not in tables and value is not None:
            yield f"{_key(key)} = {json.dumps(value, ensure_ascii=False)}"
    for key, table in tables.items():
        inner = list(_lines(table, f"{above}{_key(key)}."))
        if inner:
            if not inner[0].startswith("["):
                yield f"\n[{above}{_key(key)}]"
            yield from inner


def _key(name: str) -> str:
    return name if name.replace("_", "").replace("-", "").isalnum() and name.isascii() else json.dumps(name)
