"""The frame of a page that is written to a file: it runs no script and loads nothing."""

from __future__ import annotations

from collections.abc import Mapping

from pairkit.base.cli.result_table import PAGE_HEAD, escape, style
from pairkit.base.version import __version__

# In case that escaping fails: the browser neither runs nor loads anything.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def html_page(
    command: str,
    kind: str,
    name: str,
    sections: Mapping[str, str],
    foot: str,
) -> str:
    """A page of the command, with links to its sections; empty ones are left out."""
    shown = [
        (f"section{place}", title, body)
        for place, (title, body) in enumerate(sections.items())
        if body
    ]
    links = "".join(f'<a href="#{key}">{title}</a>' for key, title, _ in shown)
    body = "".join(
        f'<section id="{key}"><h2>{title}</h2>{inner}</section>'
        for key, title, inner in shown
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'{generator(command)}<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"{PAGE_HEAD}<title>{escape(name)}: {kind.lower()}</title>"
        f"<style>{style('pairkit.reports', 'page.css')}</style></head>"
        f'<body><header class="top"><p>{kind}</p><h1>{escape(name)}</h1><nav>{links}</nav></header>'
        f"<main>{body}</main>"
        f"<footer>Made by {command} (aoe-toolkit {__version__}){escape(foot)}</footer></body></html>\n"
    )


def generator(command: str) -> str:
    """The tag by which a page of a command is recognised."""
    return f'<meta name="generator" content="{command}">'
