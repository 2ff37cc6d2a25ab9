from __future__ import annotations

from urllib.parse import urlsplit

import pytest
import requests
from hypothesis import example, given, settings
from hypothesis import strategies as st
from urllib3.util import parse_url

from pairkit import BadReply, ConfigError
from pairkit.base.system.address import Address, Origin, is_path, origin_of, read_address

ROOT = "https://api.example"


def read(text: str) -> Address:
    return read_address(text, "--api-url", ROOT)


@pytest.mark.parametrize(
    ("text", "url", "origin"),
    [
        ("HTTPS://Api.Example:443/", ROOT, ("https", "api.example", 443)),
        ("http://localhost:00080/v1/", "http://localhost/v1", ("http", "localhost", 80)),
        ("https://x:8443/api/v3", "https://x:8443/api/v3", ("https", "x", 8443)),
        ("http://[0:0::1]:8000", "http://[::1]:8000", ("http", "[::1]", 8000)),
        ("http://gpu_box:1/v1", "http://gpu_box:1/v1", ("http", "gpu_box", 1)),
    ],
)
def test_addresses(text: str, url: str, origin: tuple[str, str, int]) -> None:
    assert (read(text).url, read(text).origin) == (url, origin)


NO_ADDRESSES = {
    "a user or password": ["https://me:hunter2@api.example", "https://api.example@evil"],
    "a query or a fragment": ["https://api.example/?key=hunter2", "https://api.example/#hunter2"],
    "xn--": ["https://b\u00fccher.example", "https://api.example\u3002evil"],
    "expected a server's root, such as https://api.example": [
        *("ftp://x", "https://", "https://x:", "https://x:0", "https://x:65536", "https://[", "https://[::1"),
        *("https://[::1%25eth0]", "https://[1]", "https://a\\b", "https://a\tb", "https://x\n", " https://x"),
        *("https://x//y", "https://data..example", "https://.example", f"https://{'a' * 64}.example"),
    ],
}


@pytest.mark.parametrize(
    ("text", "words"), [(text, words) for words, texts in NO_ADDRESSES.items() for text in texts]
)
def test_invalid_addresses(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        read(text)
    assert "hunter2" not in str(caught.value)
    assert str(caught.value).startswith("api_url=")


@pytest.mark.parametrize(
    ("url", "is_loopback"),
    [
        ("http://localhost:1", True),
        ("http://LOCALHOST", True),
        ("http://127.8.9.1", True),
        ("http://[::1]:2", True),
        ("http://localhost.evil", False),
        ("http://10.0.0.1", False),
        ("http://127.1", False),  # libraries differ in what they take it for
        ("http://[::2]", False),
    ],
)
def test_loopback(url: str, is_loopback: bool) -> None:
    assert read(url).is_loopback is is_loopback


def test_secret_over_plain_http_is_refused() -> None:
    for url in ("https://x", "http://127.0.0.1:8"):
        read(url).guard("the token", "say so")
    with pytest.raises(ConfigError, match=r"http://x: over plain http, .* the token; use https, or say so"):
        read("http://x").guard("the token", "say so")


EVIL = [
    *("@evil/x", "//evil/x", "/\\evil", "\\\\evil", ".evil/x", ":8@evil/", "https://evil/", "", "x"),
    *("/a\r\nHost: evil", "/a\tb", "/a b", "/a#b", "/\x00", "/\u2028", "/\ud800"),
]


@pytest.mark.parametrize("path", EVIL)
@pytest.mark.parametrize("root", [ROOT, f"{ROOT}/api/v3"])
def test_paths_to_other_hosts(path: str, root: str) -> None:
    with pytest.raises(BadReply, match="is not a path on this server"):
        read(root).join(path)
    assert not is_path(path)


HOSTS = st.sampled_from(["https://evil", "http://api.example", "https://api.example:444", "//evil", "@evil"])
PARTS = st.sampled_from([*"/\\@:?#%. []\n\t", "..", "%2f", "%5c", "evil", "api.example", "https:", "\u2100"])


@settings(max_examples=50)
@given(st.lists(PARTS | HOSTS | st.characters(), max_size=8).map("".join))
@example("/\\evil")
@example("/?x=@evil//")
def test_joined_urls_stay_on_the_server(text: str) -> None:
    address = read("https://api.example/api/v3")
    try:
        url = address.join(text)
    except BadReply:
        return
    seen = requests.Request("GET", url).prepare().url or ""
    assert urlsplit(seen)[:2] == ("https", "api.example")
    assert parse_url(seen)[:4] == ("https", None, "api.example", None)
    assert origin_of(seen) == Origin("https", "api.example", 443)


@pytest.mark.parametrize("dots", ["..", ".", "%2e%2e", ".%2E", "%2e", "%2E."])
def test_paths_upwards(dots: str) -> None:
    address = read("http://h/tenant/api")
    for path in (f"/{dots}", f"/{dots}/{dots}/admin", f"/a/{dots}/b", f"/a/{dots}?x=1"):
        with pytest.raises(BadReply, match="is not a path on this server"):
            address.join(path)
    assert address.join(f"/a..b/.{dots}x?next=/../") == f"http://h/tenant/api/a..b/.{dots}x?next=/../"
    with pytest.raises(ConfigError, match="expected a server's root"):
        read(f"http://h/tenant/{dots}")
