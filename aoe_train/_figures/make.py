"""From models and pairs to a folder of figures."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from aoe_train._figures.curves import Curves, read_curves
from aoe_train._figures.densities import cosine_axis, cosine_densities, gold_scores
from aoe_train._figures.draw_curves import draw_curves
from aoe_train._figures.draw_densities import draw_densities
from aoe_train._figures.draw_halves import draw_halves
from aoe_train._figures.folder import RECORD_FILE, check_folder, plain
from aoe_train._figures.halves import Halves, check_even, halves
from aoe_train._figures.pairs import Gold, Scored, read_gold, score
from aoe_train._figures.style import paper_style, write_figure
from aoe_train._figures.tsne import Tsne
from aoe_train._figures.zone import Zone
from pairkit import __version__
from pairkit.errors import ConfigError, DataError
from pairkit.files import whole_folder, write_json
from pairkit.in_memory import Source, source_name
from pairkit.labels import AS_FOUND, LabelRules
from pairkit.progress import Listener

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

Kind = Literal["densities", "halves", "curves"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class Request:
    """What to draw.

    Attributes:
        models: Folders, Hub ids, `minilm` or `smollm2`.
        data: Pairs with gold scores; only curves do without.
        split: See `read_gold`.
        columns: Roles to names of its columns.
        rules: What labels of `data` count as.
        kind: One of `KINDS`, or `all`: then what can't be drawn is left out.
        saturation: |cosine| above which the densities call a pair saturated.
    """

    models: Sequence[str]
    data: Source | None
    split: str | None = None
    columns: Mapping[str, str] | None = None
    rules: LabelRules = AS_FOUND
    kind: str = "all"
    saturation: float = 0.95
    zone: Zone = field(default_factory=Zone)
    tsne: Tsne = field(default_factory=Tsne)

    def __post_init__(self) -> None:
        if self.kind not in (*KINDS, "all"):
            raise ConfigError(f"--kind {self.kind}: expected {', '.join(KINDS)} or all")
        if not self.models:
            raise ConfigError("no model to draw figures of; give --model")
        if len(set(self.models)) < len(self.models):
            raise ConfigError("a model is given twice; give each --model once")
        if self.split not in (None, "test", "dev"):
            raise ConfigError(f"--split {self.split}: expected test or dev")
        if not 0 < self.saturation < 1:
            raise ConfigError(f"--saturation {self.saturation:g}: expected more than 0 and less than 1")
        if self.data is None and self.kind not in ("curves", "all"):
            raise ConfigError(f"--kind {self.kind} needs --data, pairs with gold scores")

    @property
    def titles(self) -> dict[str, str]:
        """Each model by the name it has in figures: the end of its path, as long as it takes to differ."""
        parts = [re.split(r"[/\\]", model.rstrip("/\\")) for model in self.models]
        for length in range(1, max(map(len, parts))):
            names = ["/".join(path[-length:]) for path in parts]
            if len(set(names)) == len(names):
                return dict(zip(names, self.models, strict=True))
        return {model: model for model in self.models}

    def wants(self, kind: Kind) -> bool:
        """Whether this kind is to be drawn."""
        return self.kind in (kind, "all")


def make_figures(
    request: Request, out: str | Path, *, say: Callable[[str], None] = print, progress: bool | Listener = True
) -> dict[str, Any]:
    """Draw figures and write them with their numbers; the folder is whole or absent.

    Args:
        request: What to draw.
        out: The folder; one that holds nothing but figures is replaced.
        say: Told what goes on.
        progress: Shown on stderr, or told to a function.

    Returns:
        What figures.json holds.

    Raises:
        ConfigError: Nothing, or not the one kind asked for, can be drawn of these models; or a package is
            missing.
        DataError: Pairs, vectors or a run.json that allow no figure.
        RemoteError: The Hub could not be asked.
    """
    out = Path(out)
    check_folder(out)
    with paper_style():
        left_out: dict[str, str] = {}
        curves = _curves(request, left_out)
        gold = data = None
        if request.data is not None and request.kind != "curves":
            gold = read_gold(request.data, request.split, request.rules, say, request.columns)
            data = {"source": source_name(request.data), "pairs": len(gold)}
        record: dict[str, Any] = {
            "made_by": f"aoe {__version__}",
            "models": request.titles,
            "data": data,
            "left_out": left_out,
        }
        figures: dict[str, Figure] = {}
        if gold is not None:
            _draw_vectors(request, gold, record, figures, say, progress)
        elif request.kind == "all":
            left_out["densities and halves"] = "they need --data, pairs with gold scores"
        if curves:
            record["curves"] = curves
            figures["curves"] = draw_curves(curves)
        for what, reason in left_out.items():
            say(f"left out {what}: {reason}")
        if not figures:
            raise ConfigError(f"nothing can be drawn: {'; '.join(left_out.values())}")
        return _write(out, record, figures)


def _draw_vectors(
    request: Request,
    gold: Gold,
    record: dict[str, Any],
    figures: dict[str, Figure],
    say: Callable[[str], None],
    progress: bool | Listener,
) -> None:
    """Add the figures of what models make of the pairs, and their numbers; a model at a time is in memory."""
    cosines: dict[str, np.ndarray] = {}
    found: dict[str, Halves] = {}
    for name, model in request.titles.items():
        scored = _score(request, gold, name, model, say, progress)
        cosines[name] = scored.cosines
        if request.wants("halves"):
            say(f"{name}: t-SNE of both halves")
            with _may_be_left_out(request, f"halves of {name}", record["left_out"]):
                found[name] = halves(scored, request.zone, request.tsne, model=name)
                figures[_file_name(f"halves-{name}", figures)] = draw_halves(
                    found[name], model=name, data=gold.name
                )
    if found:
        record["halves"] = found
    if request.wants("densities"):
        axis = cosine_axis([*cosines.values()])
        scores = gold_scores(gold)
        panels = {
            name: cosine_densities(one, gold.labels, scores, axis, saturation=request.saturation)
            for name, one in cosines.items()
        }
        record["densities"] = {"saturation": request.saturation, "gold": scores, "models": panels}
        figures["densities"] = draw_densities(
            panels, scores, axis, saturation=request.saturation, data=gold.name
        )


def _score(
    request: Request,
    gold: Gold,
    name: str,
    model: str,
    say: Callable[[str], None],
    progress: bool | Listener,
) -> Scored:
    from aoe_train._encoder import Encoder  # torch comes with it; curves need none

    encoder = Encoder.load(model, precision="fp32", inference_only=True)
    if request.kind == "halves":
        check_even(encoder.dim, name)
    say(f"{name}: encodes the texts of {len(gold):,} pairs")
    return score(lambda texts: encoder.encode(texts, progress=progress), gold)


def _curves(request: Request, left_out: dict[str, str]) -> dict[str, Curves]:
    curves = {}
    for name, model in request.titles.items() if request.wants("curves") else ():
        with _may_be_left_out(request, f"curves of {name}", left_out):
            curves[name] = read_curves(model)
    return curves


@contextmanager
def _may_be_left_out(request: Request, what: str, left_out: dict[str, str]) -> Iterator[None]:
    """Note why a figure can't be drawn, where all are wanted that can."""
    try:
        yield
    except (ConfigError, DataError) as error:
        if request.kind != "all":
            raise
        left_out[what] = str(error)


def _file_name(name: str, taken: dict[str, Any]) -> str:
    """A name that every file system takes, and no other figure has."""
    plain_name = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-")[:100]
    number, found = 2, plain_name
    while found in taken:
        number, found = number + 1, f"{plain_name}-{number}"
    return found


def _write(out: Path, record: dict[str, Any], figures: dict[str, Figure]) -> dict[str, Any]:
    with whole_folder(out) as folder:
        files = [file for name, figure in figures.items() for file in write_figure(figure, folder, name)]
        whole: dict[str, Any] = plain({**record, "files": [*sorted(files)]})
        write_json(folder / RECORD_FILE, whole)
    return whole
