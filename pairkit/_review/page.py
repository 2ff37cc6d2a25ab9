"""The page, in one file: its style and script stand in it, and its policy lets in nothing else.

The policy names both by their digests, lets the script ask its own server alone, and has the browser refuse
to make HTML of a text (trusted types): the script builds nodes.
"""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from pairkit.look import style


def page() -> tuple[bytes, str]:
    """The page, and its policy."""
    look, script = style(__package__ or "", "page.css"), _read("page.js")
    html = _read("page.html").replace("@STYLE@", look).replace("@SCRIPT@", script)
    policy = (
        f"default-src 'none'; style-src '{_digest(look)}'; script-src '{_digest(script)}';"
        " connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none';"
        " require-trusted-types-for 'script'; trusted-types 'none'"
    )
    return html.encode(), policy


def _read(name: str) -> str:
    return files(__package__ or "").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
