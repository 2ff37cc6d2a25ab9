"""The dataset card: README.md for dataset hubs and `datasets.load_dataset`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

# Of the Hub, for numbers of up to 3, 4, … digits.
_SIZE_CATEGORIES = (
    "n<1K",
    "1K<n<10K",
    "10K<n<100K",
    "100K<n<1M",
    "1M<n<10M",
    "10M<n<100M",
    "100M<n<1B",
    "1B<n<10B",
    "10B<n<100B",
    "100B<n<1T",
    "n>1T",
)


def dataset_card(
    title: str,
    *,
    configs: Mapping[str, Mapping[str, str]],
    rows: int,
    sections: Iterable[tuple[str, str]],
    tags: Sequence[str] = (),
) -> str:
    """A card in Markdown with a YAML head that lists the files of each configuration."""
    head = [
        "---",
        f"pretty_name: {json.dumps(title, ensure_ascii=False)}",  # JSON is YAML
        "task_categories:",
        "- sentence-similarity",
        "tags:",
    ]
    head += [f"- {tag}" for tag in ("sentence-pairs", *tags)]
    digits = len(str(rows))
    head += [
        "size_categories:",
        f"- {_SIZE_CATEGORIES[max(0, digits - 3)]}",
        "configs:",
    ]
    first, *_ = configs
    for config, files in configs.items():
        head.append(f"- config_name: {config}")
        if config == first:
            head.append("  default: true")
        head.append("  data_files:")
        for split, pattern in files.items():
            head += [f"  - split: {split}", f"    path: {pattern}"]
    head += ["---", "\n"]
    body = f"# {title}\n"
    for heading, text in sections:
        if heading:
            body += f"\n## {heading}\n"
        body += f"\n{text.strip()}\n"
    return "\n".join(head) + body


def with_section(card: str, heading: str, text: str) -> str:
    """The card with this section, which replaces an earlier one or goes before `Limitations` or last."""
    card = f"{card.rstrip()}\n\n"
    section = f"## {heading}\n\n{text.strip()}\n\n"
    place = rf"(?ms)^## {re.escape(heading)}$.*?(?=^## |\Z)"
    if not re.search(place, card):
        place = r"(?m)^(?=## Limitations)|\Z"
    card = re.sub(place, lambda _: section, card, count=1)
    return card.rstrip("\n") + "\n"


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table with thousands separators; all columns but the first are right-aligned."""
    marks = ["---"] + ["---:"] * (len(header) - 1)
    cells = [[_cell(value) for value in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, marks, *cells))


def _cell(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.1%}"
    return str(value).replace("|", "\\|").replace("\n", "\\n")
