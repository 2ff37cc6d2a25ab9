"""Makes a folder of figures from models and pairs; figures.json has the numbers that were drawn."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

import pairkit
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.system.files import whole_folder, write_json
from pairkit.base.system.folders import (
    check_no_other_files,
    check_place,
    try_read_json_object,
)
from papers.figures.curves import draw_curves, read_curves
from papers.figures.densities import (
    cosine_axis,
    cosine_densities,
    draw_densities,
    gold_scores,
)
from papers.figures.halves import Halves, Pairs, Zone, draw_halves, halves
from papers.figures.pairs import count_pairs, draw_pairs
from papers.figures.style import paper_style, write_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("densities", "halves", "curves", "pairs")
RECORD_FILE = "figures.json"
_FIGURE = re.compile(r"(curves|densities|pairs|halves[A-Za-z0-9._-]*)\.(png|svg)")
# Digits of a cosine; those after them are rounding errors, which would break ties.
_DIGITS = 12


@dataclass(frozen=True)
class Request:
    """What to draw."""

    models: Sequence[str]
    data: str | None = None
    split: str | None = None
    kind: str = "all"
    saturation: float = 0.95
    zone: Zone = field(default_factory=Zone)

    def __post_init__(self) -> None:
        if self.kind not in (*KINDS, "all"):
            raise ConfigError(f"--kind {self.kind}: expected {', '.join(KINDS)} or all")
        if len(set(self.models)) < len(self.models):
            raise ConfigError("a model is given twice; give each --model once")
        if not 0 < self.saturation < 1:
            raise ConfigError(
                f"--saturation {self.saturation:g}: expected more than 0 and less than 1"
            )
        if self.data is None and self.kind not in ("curves", "all"):
            raise ConfigError(
                f"--kind {self.kind} needs --data, pairs with gold scores"
            )
        if not self.models and self.kind != "pairs":
            raise ConfigError(
                f"--kind {self.kind} needs --model; only the kind pairs has none"
            )

    @property
    def titles(self) -> dict[str, str]:
        """The models by title: the end of the path, as long as needed to be unique."""
        parts = [re.split(r"[/\\]", model.rstrip("/\\")) for model in self.models]
        for length in range(1, max(map(len, parts), default=1)):
            names = ["/".join(path[-length:]) for path in parts]
            if len(set(names)) == len(names):
                return dict(zip(names, self.models, strict=True))
        return {model: model for model in self.models}

    def wants(self, kind: str) -> bool:
        """Whether this kind is to be drawn."""
        return self.kind in (kind, "all")


def make_figures(
    request: Request, out: Path, say: Callable[[str], None]
) -> dict[str, Any]:
    """Draw the figures and write them with figures.json; the folder is complete or absent."""
    _check_folder(out)
    with paper_style():
        left_out: dict[str, str] = {}
        figures: dict[str, Figure] = {}
        record: dict[str, Any] = {
            "made_by": f"aoe-toolkit {pairkit.__version__}",
            "models": request.titles,
            "data": request.data,
            "left_out": left_out,
        }
        if request.data is not None and request.kind not in ("curves", "pairs"):
            _draw_vectors(request, record, figures, say)
        elif request.kind == "all":
            left_out["densities, halves and pairs"] = (
                "need --data, pairs with gold scores"
            )
        if request.data is not None and request.wants("pairs"):
            counts = count_pairs(pairkit.read(request.data))
            record["pairs"] = counts.numbers()
            figures["pairs"] = draw_pairs(counts, Path(request.data).name)
        curves = {}
        if request.wants("curves"):
            for name, model in request.titles.items():
                with _note_failure(request, f"curves of {name}", left_out):
                    curves[name] = read_curves(model)
        if curves:
            record["curves"] = curves
            figures["curves"] = draw_curves(curves)
        for what, reason in left_out.items():
            say(f"skipped {what}: {reason}")
        if not figures:
            raise ConfigError(f"nothing can be drawn: {'; '.join(left_out.values())}")
        with whole_folder(out) as folder:
            files: list[str] = []
            for name, figure in figures.items():
                files += write_figure(figure, folder, name)
            whole: dict[str, Any] = _plain({**record, "files": sorted(files)})
            write_json(folder / RECORD_FILE, whole)
        return whole


def _draw_vectors(
    request: Request,
    record: dict[str, Any],
    figures: dict[str, Figure],
    say: Callable[[str], None],
) -> None:
    """Add densities and halves with their numbers; one model at a time is in memory."""
    source = Path(str(request.data))
    frame = _read(str(request.data), request.split)
    # Labels of type float32 become exact, such as 4.8 instead of 4.80000019.
    labels = frame["label"].cast(pl.Float64).round(6).to_numpy()
    if len(np.unique(labels)) < 2:
        raise DataError(
            "figures by gold score need labels that differ", path=str(request.data)
        )
    data = source.name
    cosines: dict[str, np.ndarray] = {}
    found: dict[str, Halves] = {}
    for name, model in request.titles.items():
        say(f"{name}: encoding the texts of {len(labels):,} pairs")
        pairs = _encode(model, frame, labels, data)
        cosines[name] = pairs.cosines
        if request.wants("halves"):
            say(f"{name}: t-SNE of both halves")
            with _note_failure(request, f"halves of {name}", record["left_out"]):
                found[name] = halves(pairs, request.zone, model=name)
                drawn = draw_halves(found[name], model=name, data=data)
                figures[_file_name(f"halves-{name}", figures)] = drawn
    if found:
        record["halves"] = found
    if request.wants("densities"):
        axis = cosine_axis([*cosines.values()])
        scores = gold_scores(labels)
        limit = request.saturation
        panels = {
            name: cosine_densities(one, labels, scores, axis, saturation=limit)
            for name, one in cosines.items()
        }
        record["densities"] = {"saturation": limit, "gold": scores, "models": panels}
        figures["densities"] = draw_densities(
            panels, scores, axis, saturation=limit, data=data
        )


def _read(data: str, split: str | None) -> pl.DataFrame:
    splits = pairkit.read(data).splits
    name = split or ("test" if len(splits) > 1 else next(iter(splits)))
    if name not in splits:
        raise DataError(f"no split {name!r}; expected {', '.join(splits)}", path=data)
    return splits[name]


def _encode(
    model: str,
    frame: pl.DataFrame,
    labels: np.ndarray,
    data: str,
) -> Pairs:
    """Encode each distinct text once, and compare the texts of each pair."""
    from aoe_train import Encoder

    first = frame["text1"].to_list()
    second = frame["text2"].to_list()
    distinct = dict.fromkeys([*first, *second])
    row_of_text = {text: row for row, text in enumerate(distinct)}
    encoder = Encoder.load(model, precision="fp32", inference_only=True)
    vectors = encoder.encode([*distinct], progress=False)
    if not np.isfinite(vectors).all():
        raise DataError(
            f"{model}: its vectors have NaN or infinity; its training diverged",
            path=data,
        )
    first_rows = np.array([row_of_text[text] for text in first])
    second_rows = np.array([row_of_text[text] for text in second])
    exact = vectors.astype(np.float64)
    lengths = np.linalg.norm(exact, axis=1, keepdims=True)
    exact /= np.maximum(lengths, np.finfo(np.float64).tiny)
    products = np.einsum("pd,pd->p", exact[first_rows], exact[second_rows])
    cosines = products.round(_DIGITS)
    if np.ptp(cosines) == 0:
        raise DataError(
            f"every cosine is {cosines[0]:g}: the vectors of {model} collapsed",
            path=data,
        )
    rows = np.stack([first_rows, second_rows], axis=1)
    return Pairs(data, first, second, labels, vectors, rows, cosines)


@contextmanager
def _note_failure(
    request: Request, what: str, left_out: dict[str, str]
) -> Iterator[None]:
    """With --kind all, note why a figure can't be drawn instead of failing."""
    try:
        yield
    except (ConfigError, DataError) as error:
        if request.kind != "all":
            raise
        left_out[what] = str(error)


def _file_name(name: str, taken: Mapping[str, Any]) -> str:
    """A unique name of portable characters."""
    base = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-")[:100]
    unique = base
    number = 1
    while unique in taken:
        number += 1
        unique = f"{base}-{number}"
    return unique


def _check_folder(out: Path) -> None:
    """Refuse to replace a folder that has anything but our figures."""
    check_place(out, "a set of figures", "figures")
    record = try_read_json_object(out / RECORD_FILE) or {}
    files = record.get("files")
    names = map(str, files) if isinstance(files, list) else ()
    figures = [name for name in names if _FIGURE.fullmatch(name)]
    ours = [RECORD_FILE, *figures] if figures else ()
    check_no_other_files(out, ours, "a set of figures")


def _plain(value: Any) -> Any:
    """Convert dataclasses and arrays to JSON types; floats get six digits, or None if not finite."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            item.name: _plain(getattr(value, item.name))
            for item in dataclasses.fields(value)
        }
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value
