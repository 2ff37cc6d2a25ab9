"""Some of the crawls of `benchmarks/fuzz_crawl.py`, and endless lists."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from unittest.mock import patch

import pytest

from gis_builder.crawling.github.exchange import Exchange, Raw
from pairkit.app.errors import BadReply, RemoteError

from .crawl_fuzz import PLANS, World, crawl_into, fuzz_answers, places, settings_of, write_world

_MOST_REQUESTS = 150
_CURSOR = re.compile(rb', (?:after|before): \\"c[0-9]*\\"')  # cursors that the server does not know
_REGRESSIONS = (1418,)  # seeds that found bugs


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(write_world(tmp_path_factory.mktemp("world")))


@pytest.mark.parametrize("seed", [*range(25), *_REGRESSIONS])
def test_random_responses_end_in_success_or_a_one_line_error(world: World, tmp_path: Path, seed: int) -> None:
    fuzz_answers(world, tmp_path, seed)


def going_on(body: bytes, cursor: str) -> bytes:
    """Let every list of a response announce another page."""
    value = json.loads(body)
    for box, key in list(places(value)):
        if key in ("hasNextPage", "hasPreviousPage"):
            box[key] = True
        elif key in ("endCursor", "startCursor"):
            box[key] = cursor
    return json.dumps(value).encode()


@pytest.mark.parametrize("cursors", ["the same", "always new"])
@pytest.mark.parametrize("plan", PLANS)
def test_lists_that_never_end_are_refused_after_a_few_pages(
    world: World, tmp_path: Path, plan: str, cursors: str
) -> None:
    count = 0

    def once(_self: Exchange, method: str, url: str, _headers: object, body: bytes | None) -> Raw:
        nonlocal count
        count += 1
        assert count <= _MOST_REQUESTS
        status, headers, content = world.answer(method, url, _CURSOR.sub(b"", body or b""))
        cursor = "c" if cursors == "the same" else f"c{count}"
        return Raw(status, headers, going_on(content, cursor))

    settings = settings_of(random.Random(1), plan)
    with patch.object(Exchange, "_send", once), pytest.raises(RemoteError) as caught:
        crawl_into(plan, settings, tmp_path)
    assert "repeated a cursor" in str(caught.value) or "without new items" in str(caught.value)
    assert BadReply.exit_code == caught.value.exit_code == 4
