from __future__ import annotations

from dataclasses import replace

from gis_builder.pairing.split import tie_similar

from .pair_material import ref, text_of


def test_issues_with_nearly_the_same_text_are_tied_across_repositories() -> None:
    texts = {issue: text_of(issue) for issue in (ref(1), ref(2), ref(3), ref(1, "p/q"))}
    texts[ref(3)] = replace(texts[ref(3)], text=texts[ref(1)].text + " again")
    texts[ref(1, "p/q")] = replace(texts[ref(1, "p/q")], text=texts[ref(1)].text)
    assert tie_similar(texts, 0.8) == [[ref(1), ref(3), ref(1, "p/q")]]
    assert tie_similar({}, 0.8) == []
