"""Figures of models as in the papers, as `aoe figures` draws them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from aoe_train._figures.zone import Rule
    from pairkit.in_memory import Source
    from pairkit.labels import Meaning
    from pairkit.progress import Listener


@dataclass(frozen=True, repr=False)
class Figures:
    """A folder of figures.

    Attributes:
        out: The folder.
        record: What figures.json holds: the numbers that were drawn.
    """

    out: Path
    record: Mapping[str, Any]

    @property
    def files(self) -> list[Path]:
        """Each figure as PNG and as SVG."""
        return [self.out / name for name in self.record["files"]]

    @property
    def left_out(self) -> dict[str, str]:
        """What could not be drawn, with the reason."""
        return dict(self.record["left_out"])

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `aoe figures --json`: what figures state in words; curves are in figures.json."""
        densities = self.record.get("densities", {"models": {}})["models"]
        halves, curves = self.record.get("halves", {}), self.record.get("curves", {})
        return {
            "out": str(self.out),
            "files": self.record["files"],
            "left_out": self.left_out,
            "densities": {
                name: {key: panel[key] for key in ("spearman", "saturated")}
                for name, panel in densities.items()
            },
            "halves": {
                name: {
                    "pairs": len(found["numbers"]),
                    "original": _averages(found["original"]),
                    "plane": _averages(found["plane"]),
                }
                for name, found in halves.items()
            },
            "curves": {name: {"steps": int(found["loss"]["x"][-1])} for name, found in curves.items()},
        }

    def __repr__(self) -> str:
        return f"Figures({str(self.out)!r}: {', '.join(path.name for path in self.files)})"

    def _repr_html_(self) -> str:
        from base64 import b64encode

        drawn = [path.read_bytes() for path in self.files if path.suffix == ".png"]
        sources = [f"data:image/png;base64,{b64encode(content).decode()}" for content in drawn]
        return "".join(f'<img src="{source}" style="max-width:100%">' for source in sources)


def figures(
    model: str | Path | Sequence[str | Path],
    *,
    out: str | Path,
    data: Source | None = None,
    columns: Mapping[str, str] | None = None,
    labels: Mapping[str, Meaning] | str | None = None,
    label_range: tuple[float, float] | str | None = None,
    split: str | None = None,
    kind: str = "all",
    saturation: float = 0.95,
    zone: str = "gold",
    above: float = 0.95,
    most: int = 2_000,
    perplexity: float = 30.0,
    seed: int = 42,
    progress: bool | Listener = True,
) -> Figures:
    """Draw models' figures as in the papers: PNG and SVG, and their numbers in figures.json.

    `densities`: cosines by gold score, a panel for each model. `halves`: real against imaginary halves of
    the vectors of the pairs in the saturation zone, by t-SNE and by distance, a figure for each model.
    `curves`: loss, its parts and the dev metric against steps, of models of `train`. With `all`, what can't
    be drawn is left out and told.

    Args:
        model: Folders, Hub ids, `minilm` or `smollm2`; one or several.
        out: A folder of its own; figures that lie there are replaced.
        data: Pairs with gold scores or labels; only curves do without.
        columns: Which of its columns is which; see `train`.
        labels: What labels of `data` count as; see `train`.
        label_range: The scale of its scores; see `train`.
        split: test or dev, of a dataset.
        kind: densities, halves, curves or all.
        saturation: densities: |cosine| above which a pair is saturated.
        zone: halves: the pairs of the saturation zone by their gold score, by their |cosine| (cosine), or
            all.
        above: halves: where the zone begins, as a share of the highest score.
        most: halves: pairs to draw, a seeded choice if there are more.
        perplexity: halves: of t-SNE.
        seed: Decides every random choice.
        progress: Shown on stderr, or not, or told to a function.

    Raises:
        ConfigError: Something asked for can't be drawn of these models, or a package is missing.
        DataError: Pairs, vectors or a run.json that allow no figure.
        RemoteError: The Hub could not be asked.
    """
    from aoe_train._face.notes import notes
    from aoe_train._figures.make import Request, make_figures
    from aoe_train._figures.tsne import Tsne
    from aoe_train._figures.zone import Zone
    from pairkit.labels import label_rules

    request = Request(
        [str(model)] if isinstance(model, str | Path) else [str(one) for one in model],
        str(data) if isinstance(data, Path) else data,
        split=split,
        columns=columns,
        rules=label_rules(labels, label_range),
        kind=kind,
        saturation=saturation,
        zone=Zone(cast("Rule", zone), above, most),
        tsne=Tsne(perplexity, seed),
    )
    return Figures(Path(out), make_figures(request, out, say=notes(progress), progress=progress))


def _averages(distances: Mapping[str, Any]) -> dict[str, float]:
    return {
        "avg_re": distances["real"]["mean"],
        "avg_im": distances["imaginary"]["mean"],
        "imaginary_larger": distances["imaginary_larger"],
    }
