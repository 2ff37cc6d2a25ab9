from __future__ import annotations

import pytest

from papers.figures.style import drawing, image

mpl = pytest.importorskip("matplotlib")


def test_a_figure_is_the_same_bytes_whatever_the_machine_is_set_to() -> None:
    def drawn() -> list[bytes]:
        from matplotlib.figure import Figure

        with drawing({"font.size": 7, "svg.hashsalt": "x"}):
            assert mpl.rcParams["font.size"] == 7
            figure = Figure(figsize=(2, 1))
            figure.subplots().plot([1, 3, 2])
            return [image(figure, kind, dpi=50) for kind in ("png", "svg")]

    expected = drawn()
    assert expected[0].startswith(b"\x89PNG")
    assert b"<dc:date>" not in expected[1]
    with mpl.rc_context({"lines.linewidth": 9, "savefig.dpi": 300}):
        assert drawn() == expected
