"""What our pages look like: colours for light and dark, letters, marked words, two texts side by side."""

from __future__ import annotations

from importlib.resources import files


def style(package: str, sheet: str) -> str:
    """The look that all pages have, and behind it a page's own.

    Args:
        package: Where the page's own style sheet lies.
        sheet: Its name.
    """
    places = (("pairkit", "look.css"), (package, sheet))
    return "".join(files(home).joinpath(name).read_text(encoding="utf-8") for home, name in places)
