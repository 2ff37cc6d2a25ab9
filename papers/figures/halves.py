"""The real and imaginary halves of vectors (ACL Fig. 3 and 10): t-SNE planes, distances and five pairs.

The first half of a vector has the real parts, the second the imaginary ones (ACL §3.1). The paper measures
distances in the t-SNE planes. These are not distances between vectors: t-SNE keeps neighbours, not distances,
and each half has its own plane. So distances are computed both in the planes and between vectors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pairkit.base.errors import ConfigError, DataError
from papers.figures.densities import Curve, density
from papers.figures.style import COLOURS, GREY, fit_text, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SAMPLES = 5  # pairs whose texts are joined by a line, as in the paper
RULES = ("gold", "cosine", "all")
_MIN_DISTANCE = 1e-6  # on a logarithmic axis, as a share of the longest distance
_REAL, _IMAGINARY, *_ = COLOURS
_LINES = ("#009E73", "#CC79A7", "#E69F00", "#000000", "#56B4E9")
_HEIGHTS = (2.95, 1.75, 2.05)  # inches: planes, densities, sample pairs
_CURVE_HEIGHT = 0.72  # share of the panel below its legend
_PAIR_ROWS = 2.6  # rows of the table per pair; two have its texts
# Right ends of the table's columns.
_COLUMN_ENDS = {
    "gold": 0.665,
    "original re": 0.745,
    "original im": 0.825,
    "plane re": 0.915,
    "plane im": 0.995,
}
_MAX_TEXT = 60  # characters of a text in the table
_SMALL = 7.5  # font size of numbers


@dataclass(frozen=True)
class Pairs:
    """Pairs of texts with gold scores, and a model's vectors of the distinct texts."""

    name: str
    text1: list[str]
    text2: list[str]
    labels: np.ndarray
    vectors: np.ndarray
    rows: np.ndarray
    cosines: np.ndarray


@dataclass(frozen=True)
class Zone:
    """The pairs to compare, and the parameters of t-SNE.

    `gold`: gold score / highest score > `above`, the same pairs for every model. This is our reading of the
    ACL paper (§5, Fig. 3), whose "weighted similarity score > 0.95" includes a pair with gold score 4.8 of 5.
    `cosine`: the model's |cosine| > `above`, where the gradient of the cosine vanishes. `all`: all pairs (ACL
    Fig. 10).
    """

    rule: str = "gold"
    above: float = 0.95
    most: int = 2_000
    perplexity: float = 30.0
    seed: int = 42

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise ConfigError(f"--zone {self.rule}: expected {', '.join(RULES)}")
        if not 0 <= self.above < 1:
            raise ConfigError(
                f"--above {self.above:g}: expected 0 or more and less than 1"
            )
        if not 2 <= self.perplexity < math.inf:
            raise ConfigError(
                f"--perplexity {self.perplexity:g}: expected 2 or more (5 to 50 is usual)"
            )

    def __str__(self) -> str:
        if self.rule == "all":
            return "all pairs"
        score = "|cosine|" if self.rule == "cosine" else "gold score / highest"
        return f"{score} > {self.above:g}"

    def members(self, pairs: Pairs) -> np.ndarray:
        """int64 (pair,): the indices of all pairs in the zone, ascending."""
        if self.rule == "all":
            return np.arange(len(pairs.labels))
        strength = np.abs(pairs.cosines)
        if self.rule == "gold":
            strength = pairs.labels / pairs.labels.max()
        return np.flatnonzero(strength > self.above)


@dataclass(frozen=True)
class HalfDistances:
    """Euclidean distances within pairs, for one half of the vectors."""

    values: np.ndarray
    mean: float
    density: Curve


@dataclass(frozen=True)
class Distances:
    """Distances within pairs for both halves, between vectors or in the planes."""

    real: HalfDistances
    imaginary: HalfDistances
    imaginary_larger: float
    logarithmic: bool


@dataclass(frozen=True)
class Sample:
    """A pair whose texts are joined by a line."""

    pair: int
    text1: str
    text2: str
    gold: float
    cosine: float


@dataclass(frozen=True)
class Halves:
    """The content of a model's figure."""

    zone: str
    in_zone: int
    numbers: np.ndarray
    pairs: np.ndarray
    real: np.ndarray
    imaginary: np.ndarray
    length_real: float
    length_imaginary: float
    original: Distances
    plane: Distances
    samples: list[Sample]
    perplexity: float
    seed: int


def halves(pairs: Pairs, zone: Zone, *, model: str) -> Halves:
    """Compare the halves of the vectors of the pairs in the saturation zone."""
    if pairs.vectors.shape[1] % 2:
        raise ConfigError(
            f"{model}: vectors of {pairs.vectors.shape[1]} dimensions, an odd dimension, have no real and"
            " imaginary halves: use --kind densities or another model"
        )
    members = zone.members(pairs)
    numbers = members
    if len(members) > zone.most:
        random = np.random.default_rng(zone.seed)
        numbers = np.sort(random.choice(members, zone.most, replace=False))
    used, rows = np.unique(pairs.rows[numbers], return_inverse=True)
    ends = rows.reshape(-1, 2)
    # t-SNE uses three neighbours per unit of perplexity.
    needed = int(3 * zone.perplexity) + 2
    if len(used) < needed or len(numbers) < SAMPLES:
        raise DataError(
            f"{len(numbers):,} pairs ({len(used):,} texts) with {zone}; t-SNE at perplexity"
            f" {zone.perplexity:g} needs {needed} texts or more: lower --above or --perplexity, or use"
            " --zone all",
            path=pairs.name,
        )
    vectors = pairs.vectors[used].astype(np.float64)
    real, imaginary = np.split(vectors, 2, axis=1)
    real_plane = _to_plane(real, zone)
    imaginary_plane = _to_plane(imaginary, zone)
    return Halves(
        zone=str(zone),
        in_zone=len(members),
        numbers=numbers,
        pairs=ends,
        real=real_plane,
        imaginary=imaginary_plane,
        length_real=float(np.linalg.norm(real, axis=1).mean()),
        length_imaginary=float(np.linalg.norm(imaginary, axis=1).mean()),
        original=distances(real, imaginary, ends),
        plane=distances(real_plane, imaginary_plane, ends, logarithmic=True),
        samples=_samples(pairs, numbers, zone.seed),
        perplexity=zone.perplexity,
        seed=zone.seed,
    )


def distances(
    real: np.ndarray,
    imaginary: np.ndarray,
    pairs: np.ndarray,
    *,
    logarithmic: bool = False,
) -> Distances:
    """Distances within pairs for each half."""
    first, second = pairs.T
    halves_of_texts = np.stack([real, imaginary])
    apart = np.linalg.norm(
        halves_of_texts[:, first] - halves_of_texts[:, second], axis=2
    )
    longest = float(apart.max()) or 1.0
    shown = apart
    axis = (0.0, 1.05 * longest)
    options: dict[str, Any] = {"bounds": (0.0, None)}
    if logarithmic:
        shown = np.log10(np.maximum(apart, _MIN_DISTANCE * longest))
        low = float(np.floor(shown.min()))
        high = float(np.ceil(shown.max()))
        axis = (low, max(high, low + 1))
        options = {}
    of_real, of_imaginary = (
        HalfDistances(values, float(values.mean()), density(drawn, axis, **options))
        for values, drawn in zip(apart, shown, strict=True)
    )
    is_larger = of_imaginary.values > of_real.values
    return Distances(of_real, of_imaginary, float(is_larger.mean()), logarithmic)


def _to_plane(half: np.ndarray, zone: Zone) -> np.ndarray:
    """t-SNE (van der Maaten and Hinton, 2008) of (text, half) to float64 (text, 2), centred."""
    from sklearn.manifold import TSNE

    tsne = TSNE(perplexity=zone.perplexity, random_state=zone.seed, init="pca")
    points: np.ndarray = tsne.fit_transform(half).astype(np.float64)
    points -= points.mean(axis=0)
    return points


def _samples(pairs: Pairs, numbers: np.ndarray, seed: int) -> list[Sample]:
    """Random pairs of different texts, or of any texts if these are too few."""
    first, second = pairs.rows[numbers].T
    candidates = np.flatnonzero(first != second)
    if len(candidates) < SAMPLES:
        candidates = np.arange(len(numbers))
    chosen = np.sort(
        np.random.default_rng(seed).choice(candidates, SAMPLES, replace=False)
    )
    return [
        Sample(
            pair=int(pair),
            text1=pairs.text1[row],
            text2=pairs.text2[row],
            gold=float(pairs.labels[row]),
            cosine=float(pairs.cosines[row]),
        )
        for pair, row in zip(chosen, numbers[chosen], strict=True)
    ]


def draw_halves(halves: Halves, *, model: str, data: str) -> Figure:
    """Draw the figure of one model (ACL Fig. 3 and 10)."""
    figure = new_figure(sum(_HEIGHTS) + 0.5)
    grid = figure.add_gridspec(3, 2, height_ratios=_HEIGHTS)
    heading = _heading(halves, model, data)
    figure.suptitle(heading, x=0.01, ha="left", fontsize=8.5)
    planes = np.concatenate([halves.real, halves.imaginary])
    extent = 1.1 * float(np.abs(planes).max())

    left = figure.add_subplot(grid[0, 0], title="(a) Real halves, t-SNE")
    _draw_plane(left, halves.real, halves, _REAL, extent)
    right = figure.add_subplot(grid[0, 1], title="(b) Imaginary halves, t-SNE")
    _draw_plane(right, halves.imaginary, halves, _IMAGINARY, extent)

    left = figure.add_subplot(grid[1, 0], title="(c) Distances in the original space")
    _draw_distances(left, halves.original)
    right = figure.add_subplot(grid[1, 1], title="(d) Distances in t-SNE's planes")
    _draw_distances(right, halves.plane)

    _draw_table(figure.add_subplot(grid[2, :]), halves)
    return figure


def _heading(halves: Halves, model: str, data: str) -> str:
    drawn = len(halves.numbers)
    of = "" if drawn == halves.in_zone else f" of {halves.in_zone:,}"
    return (
        f"{fit_text(model, 40)} on {fit_text(data, 40)}\n{halves.zone}: {drawn:,}{of} pairs,"
        f" {len(halves.real):,} texts; t-SNE with perplexity {halves.perplexity:g}"
    )


def _draw_plane(
    axes: Axes,
    points: np.ndarray,
    halves: Halves,
    colour: str,
    extent: float,
) -> None:
    size = float(np.clip(2_400 / len(points), 2, 12))
    x, y = points.T
    axes.scatter(
        x,
        y,
        s=size,
        color=colour,
        alpha=0.45,
        linewidths=0,
        rasterized=len(points) > 2_000,
    )
    for number, (sample, line) in enumerate(
        zip(halves.samples, _LINES, strict=True), start=1
    ):
        ends = points[halves.pairs[sample.pair]]
        axes.plot(
            *ends.T,
            color=line,
            linewidth=1.2,
            marker="o",
            markersize=3.2,
        )
        axes.annotate(
            str(number),
            ends[ends[:, 1].argmax()],
            xytext=(3, 3),
            textcoords="offset points",
            fontsize=_SMALL,
            fontweight="bold",
        )
    axes.set_xlim(-extent, extent)
    axes.set_ylim(-extent, extent)
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set(visible=True, color=GREY)


def _draw_distances(axes: Axes, distances: Distances) -> None:
    """Draw the densities of both halves; above them the legend, and at its right the comparison."""
    real = distances.real
    imaginary = distances.imaginary
    is_logarithmic = distances.logarithmic
    _draw_half(axes, real, is_logarithmic, "re", color=_REAL, linestyle="-")
    _draw_half(axes, imaginary, is_logarithmic, "im", color=_IMAGINARY, linestyle="--")
    if is_logarithmic:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()
    tallest = max(real.density.y.max(), imaginary.density.y.max())
    axes.set_ylim(0, float(tallest) / _CURVE_HEIGHT)
    axes.set_yticks([])
    axes.set_xlabel("Euclidean distance of a pair's two texts")
    axes.spines["left"].set_visible(False)
    legend = axes.legend(
        loc="upper left", bbox_to_anchor=(-0.02, 1.03), handlelength=2.4
    )
    for text in legend.get_texts():
        text.set_parse_math(True)
    comparison = f"im > re in {100 * distances.imaginary_larger:.0f} % of pairs"
    axes.text(
        0.98,
        0.93,
        comparison,
        ha="right",
        va="center",
        transform=axes.transAxes,
        fontsize=_SMALL,
    )


def _draw_half(
    axes: Axes,
    half: HalfDistances,
    is_logarithmic: bool,
    name: str,
    **style: Any,
) -> None:
    x = 10**half.density.x if is_logarithmic else half.density.x
    y = half.density.y
    label = f"$AVG_{{{name}}}$ = {_three_digits(half.mean)}"
    axes.fill_between(
        x,
        y,
        color=style["color"],
        alpha=0.18,
        linewidth=0,
    )
    axes.plot(x, y, label=label, **style)
    axes.axvline(half.mean, ymax=_CURVE_HEIGHT, linewidth=0.8, **style)
    axes.set_xlim(x[0], x[-1])


def _draw_table(axes: Axes, halves: Halves) -> None:
    """Draw the sample pairs with their distances, of the vectors and in the planes."""
    bottom = _PAIR_ROWS * len(halves.samples) + 1.2
    axes.set(xlim=(0, 1), ylim=(bottom, -1.3))
    axes.set_axis_off()
    for heading, space in (("original space", "original"), ("t-SNE's planes", "plane")):
        first = _COLUMN_ENDS[f"{space} re"]
        last = _COLUMN_ENDS[f"{space} im"]
        _draw_heading(axes, heading, first, last)
    for column, end in _COLUMN_ENDS.items():
        _, _, half = column.rpartition(" ")
        axes.text(end, 0.5, half, ha="right", va="center")
    distances = {
        "original re": halves.original.real,
        "original im": halves.original.imaginary,
        "plane re": halves.plane.real,
        "plane im": halves.plane.imaginary,
    }
    write = partial(axes.text, va="center", fontsize=_SMALL)
    for number, (sample, line) in enumerate(zip(halves.samples, _LINES, strict=True)):
        top = _PAIR_ROWS * number + 1.9
        middle = top + 0.5
        axes.plot(
            [0.0, 0.02],
            [middle, middle],
            color=line,
            linewidth=2,
            clip_on=False,
        )
        write(0.03, middle, str(number + 1), fontweight="bold")
        write(0.055, top, fit_text(sample.text1, _MAX_TEXT), fontsize=7)
        write(0.055, top + 1, fit_text(sample.text2, _MAX_TEXT), fontsize=7)
        write(_COLUMN_ENDS["gold"], middle, f"{sample.gold:g}", ha="right")
        for column, distance in distances.items():
            figure = _three_digits(float(distance.values[sample.pair]))
            write(_COLUMN_ENDS[column], middle, figure, ha="right")


def _draw_heading(axes: Axes, heading: str, first: float, last: float) -> None:
    """Write a heading over two columns, with a line below it."""
    centre = (first + last) / 2 - 0.025
    axes.text(centre, -0.9, heading, ha="center", va="center")
    axes.plot(
        [first - 0.065, last],
        [-0.15, -0.15],
        color=GREY,
        linewidth=0.5,
    )


def _three_digits(value: float) -> str:
    """Three significant digits, such as 0.370 and 23.3."""
    return f"{value:#.3g}".rstrip(".")
