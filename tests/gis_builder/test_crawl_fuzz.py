"""Some of the crawls of `benchmarks/fuzz_crawl.py`, and endless lists."""

import json
import random
import re

from pairkit import RemoteError
from tests.support.shorthand import module_fixture, parametrize, raises

from .conftest import write_world
from .crawl_fuzz import (
    PLANS,
    World,
    announce_pages,
    crawl_into,
    fuzz_answers,
    patched_exchange,
    settings_of,
)

_MOST_REQUESTS = 150
# Cursors that the server does not know.
_CURSOR = re.compile(rb', (?:after|before): \\"c[0-9]*\\"')


@module_fixture
def world(tmp_path_factory):
    return World(write_world(tmp_path_factory.mktemp("world")))


@parametrize("seed", range(40))
def test_random_responses_end_in_success_or_a_one_line_error(world, tmp_path, seed):
    fuzz_answers(world, tmp_path, seed)


@parametrize("cursors", ["the same", "always new"])
@parametrize("plan", PLANS)
def test_lists_that_never_end_are_refused_after_a_few_pages(
    world, tmp_path, plan, cursors
):
    count = 0

    def respond(method, url, body):
        nonlocal count
        count += 1
        assert count <= _MOST_REQUESTS
        status, headers, content = world.answer(method, url, _CURSOR.sub(b"", body))
        value = json.loads(content)
        announce_pages(value, "c" if cursors == "the same" else f"c{count}")
        return status, headers, json.dumps(value).encode()

    settings = settings_of(random.Random(1), plan)
    refused = raises(RemoteError, match="repeated a cursor|without new items")
    with patched_exchange(respond), refused as caught:
        crawl_into(plan, settings, tmp_path)
    assert caught.value.exit_code == 4
