import json
from urllib.parse import quote, urlsplit

import requests
from hypothesis import example, given, settings
from hypothesis import strategies as st
from urllib3.util import parse_url

from pairkit import BadReply
from pairkit.base.openai_api.credentials import (
    Key,
    Masking,
    find_key,
    headers_for,
    key_variable,
    variable_name,
)
from pairkit.base.system.address import Origin, is_path, origin_of, read_address
from tests.support.shorthand import (
    config_error,
    each_line,
    parametrize,
    raises,
    table,
)


def test_default_keys_are_sent_only_to_their_provider():
    assert key_variable("api.openai.com", None) == "OPENAI_API_KEY"
    for host in ("open.bigmodel.cn", "api.z.ai"):
        assert key_variable(host, None) == "ZHIPUAI_API_KEY"
    others = (
        "evil.example localhost 127.0.0.1 api.openai.com.evil.example xapi.openai.com"
    )
    for host in others.split():
        assert key_variable(host, None) is None
        assert key_variable(host, "MINE") == "MINE"
    for named in ["MINE", "MY_2ND_KEY", "_X", "team_api_key"]:
        assert key_variable("api.openai.com", named) == named


@parametrize(
    "key",
    [
        *["sk-proj-Ab1cD2eF", "hf_aBcDeFgHiJkLmNoP", "AKIAIOSFODNN7EXAMPLE", "a.b"],
        "",
        "0123456789abcdef0123456789abcdef",
        "A_" * 40,
    ],
)
def test_a_key_is_not_the_name_of_a_variable(key):
    with raises(ValueError, match="such as OPENAI_API_KEY, not a key") as caught:
        variable_name(key)
    assert not key.strip() or key not in str(caught.value)
    if key:
        with config_error("api_key_env: expected the name"):
            key_variable("api.openai.com", key)


def test_openai_headers_are_sent_only_to_openai():
    environ = {
        "OPENAI_ORG_ID": "org",
        "OPENAI_PROJECT_ID": "project",
        "OPENAI_ADMIN_KEY": "sk-admin",
    }
    headers = {"OpenAI-Organization": "org", "OpenAI-Project": "project"}
    assert headers_for("api.openai.com", environ) == headers
    for host in ("evil.example", "127.0.0.1"):
        assert headers_for(host, environ) == {}
    with config_error("can't be sent"):
        headers_for("api.openai.com", {"OPENAI_ORG_ID": "Zoë"})


def test_key_from_variable_or_file(tmp_path):
    def found(**environ):
        return find_key("llm c", "MINE", environ, "set MINE")

    assert found(MINE=" sk-1\n") == Key("sk-1", "MINE")
    file = tmp_path / "key"
    file.write_text("sk-3\n")
    assert found(MINE_FILE=str(file)) == Key("sk-3", "MINE_FILE")
    assert "sk-3" not in repr(Key("sk-3", "MINE"))
    with config_error("can't be read"):
        found(MINE_FILE=str(tmp_path / "none"))
    for environ in ({}, {"MINE": " "}, {"MINE_FILE": ""}):
        with config_error("llm c: no key; set MINE"):
            found(**environ)
    for secret in ("sk-é", "two words", "a\nb", "nul\0"):
        with config_error("MINE isn't a key") as caught:
            found(MINE=secret)
        assert secret not in str(caught.value)


KEY = "sk-9/Ab+c=%d.e_f~"
KEYS = st.text(
    st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=40
)


@parametrize(
    "spelt",
    [
        KEY,
        json.dumps(KEY)[1:-1],
        KEY.replace("/", "\\/"),
        "".join(f"\\u{ord(c):04x}" for c in KEY),
        "".join(f"\\u{ord(c):04X}" if not c.isalnum() else c for c in KEY),
        quote(KEY, safe=""),
        quote(KEY, safe="").lower().replace("ab", "Ab"),
    ],
)
def test_masking_of_escaped_keys(spelt):
    assert Masking([KEY]).text(f'{{"a": "{spelt}"}}') == '{"a": "[key]"}'


@settings(max_examples=40)
@given(KEYS, st.text(max_size=20), st.text(max_size=20))
def test_masking_of_any_key(key, before, after):
    masking = Masking([key, "", "short"])
    for spelt in (key, quote(key, safe=""), json.dumps(key)[1:-1]):
        masked = masking.text(before + spelt + after)
        assert key not in masked.replace("[key]", "")
        assert "[key]" in masked


def test_short_keys_are_not_masked():
    for key in ("", "EMPTY", "ollama", "none", "sk-1234"):
        assert Masking([key]).text(f"The jar is {key}.") == f"The jar is {key}."
    assert Masking([]).body(b"\xff\x00 \\ %") == b"\xff\x00 \\ %"
    assert Masking(["abcdefgh", "abcdefghij"]).text("abcdefghij") == "[key]"


@parametrize(
    "escape",
    [str, lambda text: text.replace("/", "\\/"), lambda text: quote(text, safe="")],
)
def test_masking_of_the_beginning_of_a_long_key(escape):
    key = "sk-proj/Ab1cD2eF3gH4iJ5k"
    masked = Masking([key]).text
    for shown in (key[:10], key[:13], key[:10] + "***5k", key):
        assert masked(f'"Wrong key {escape(shown)}."').startswith('"Wrong key [key]')
        assert key[8:10] not in masked(f"({escape(shown)})")
    assert masked(f"It begins with {key[:9]}") == f"It begins with {key[:9]}"
    assert Masking([key[:19]]).text(key[:18]) == key[:18]  # a short one may be words


ROOT = "https://api.example"


def parsed(text):
    return read_address(text, "--api-url", ROOT)


@table(
    """
        text, url, origin
        HTTPS://Api.Example:443/ | ROOT | ('https', 'api.example', 443)
        http://localhost:00080/v1/ | http://localhost/v1 | ('http', 'localhost', 80)
        https://x:8443/api/v3 | https://x:8443/api/v3 | ('https', 'x', 8443)
        http://[0:0::1]:8000 | http://[::1]:8000 | ('http', '[::1]', 8000)
        http://gpu_box:1/v1 | http://gpu_box:1/v1 | ('http', 'gpu_box', 1)
    """,
    ROOT=ROOT,
)
def test_addresses(text, url, origin):
    assert (parsed(text).url, parsed(text).origin) == (url, origin)


ROOTS = """
    ftp://x https:// https://x: https://x:0 https://x:65536 https://[ https://[::1 https://[::1%25eth0] https://[1]
    https://a\\b https://x//y https://data..example https://.example
"""
NO_ADDRESSES = {
    "a user or password": ["https://me:hunter2@api.example"],
    "a query or a fragment": [
        "https://api.example/?key=hunter2",
        "https://api.example/#hunter2",
    ],
    "xn--": ["https://b\u00fccher.example"],
    "expected a server's root, such as https://api.example": [
        *ROOTS.split(),
        "https://a\tb",
        "https://x\n",
        " https://x",
        f"https://{'a' * 64}.example",
    ],
}


@parametrize(
    "text, words",
    [(text, words) for words, texts in NO_ADDRESSES.items() for text in texts],
)
def test_invalid_addresses(text, words):
    with config_error(words) as caught:
        parsed(text)
    assert "hunter2" not in str(caught.value)
    assert str(caught.value).startswith("api_url=")


def test_loopback():
    for host in ["localhost:1", "LOCALHOST", "127.8.9.1", "[::1]:2"]:
        assert parsed(f"http://{host}").is_loopback
    # Libraries differ in what 127.1 is.
    for host in ["localhost.evil", "10.0.0.1", "127.1", "[::2]"]:
        assert not parsed(f"http://{host}").is_loopback


OTHER_HOSTS = "@evil/x //evil/x /\\evil \\\\evil .evil/x :8@evil/ https://evil/ x"
EVIL = [
    *OTHER_HOSTS.split(),
    "",
    "/a\r\nHost: evil",
    "/a\tb",
    "/a b",
    "/a#b",
    "/\x00",
    "/\u2028",
    "/\ud800",
]


@parametrize("path", EVIL)
@parametrize("root", [ROOT, f"{ROOT}/api/v3"])
def test_paths_to_other_hosts(path, root):
    with raises(BadReply, match="is not a path on this server"):
        parsed(root).join(path)
    assert not is_path(path)


HOSTS = st.sampled_from(
    ["https://evil", "http://api.example", "https://api.example:444", "//evil", "@evil"]
)
PARTS = st.sampled_from(
    [*"/\\@:?#%. []\n\t", "..", "%2f", "%5c", "evil", "api.example", "https:", "\u2100"]
)


@settings(max_examples=50)
@given(st.lists(PARTS | HOSTS | st.characters(), max_size=8).map("".join))
@example("/\\evil")
@example("/?x=@evil//")
def test_joined_urls_stay_on_the_server(text):
    address = parsed("https://api.example/api/v3")
    try:
        url = address.join(text)
    except BadReply:
        return
    seen = requests.Request("GET", url).prepare().url or ""
    assert urlsplit(seen)[:2] == ("https", "api.example")
    assert parse_url(seen)[:4] == ("https", None, "api.example", None)
    assert origin_of(seen) == Origin("https", "api.example", 443)


@each_line("""
    dots
    ..
    .
    %2e%2e
    .%2E
    %2e
    %2E.
""")
def test_paths_upwards(dots):
    address = parsed("http://h/tenant/api")
    for path in (f"/{dots}", f"/{dots}/{dots}/admin", f"/a/{dots}/b", f"/a/{dots}?x=1"):
        with raises(BadReply, match="is not a path on this server"):
            address.join(path)
    below = f"/a..b/.{dots}x?next=/../"
    assert address.join(below) == f"http://h/tenant/api{below}"
    with config_error("expected a server's root"):
        parsed(f"http://h/tenant/{dots}")
