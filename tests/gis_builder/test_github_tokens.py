"""Sources of tokens, and their protection."""

import copy
import pickle
import threading
import traceback
from pathlib import Path

import pytest
import requests
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from msgspec.json import Decoder

import gis_builder
from gis_builder.crawl_progress import RunDisplay
from gis_builder.crawling.github import GitHub, find_tokens
from gis_builder.crawling.github.access_tokens import Token
from gis_builder.crawling.github.client import Crawl
from gis_builder.crawling.github.graphql_queries import GraphQuery
from gis_builder.settings import CrawlSettings
from gis_builder.store import Store
from pairkit import AuthError, ConfigError, PairkitError
from tests.support.shorthand import (
    config_error,
    module_fixture,
    parametrize,
    raises,
    table,
    values,
)

from .crawl_world import serving

SECRET = "ghp_thisIsNotARealTokenButMustNotShow00"
API = "https://api.github.com"
VIEWER = GraphQuery("{ viewer { login } }", Decoder(dict[str, str]))


def secrets(tokens):
    return [token.reveal() for token in tokens]


@table(r"""
    content, environ, expected
    None | {'GITHUB_TOKEN': 'a,b', 'GITHUB_TOKENS': 'b, c'} | ['a', 'b', 'c']
    # precedes the environment
    b'# mine\n\none # of ana\ntwo\n' | {'GITHUB_TOKEN': 'a'} | ['one', 'two']
    b'\xef\xbb\xbftoken\r\n' | {} | ['token']
""")
def test_from_a_file_or_the_environment(tmp_path, content, environ, expected):
    file = tmp_path / "tokens"
    if content:
        file.write_bytes(content)
    tokens = find_tokens(API, file=file if content else None, environ=environ)
    assert secrets(tokens) == expected
    names = [f"token {n} of {len(expected)}" for n in range(1, len(expected) + 1)]
    assert len(tokens) == 1 or [token.name for token in tokens] == names


def test_the_gh_tool_is_the_last_source(tmp_path, monkeypatch):
    tool = tmp_path / "gh"
    tool.write_text('#!/bin/sh\necho "gho_$1_$2_$4"\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert secrets(find_tokens(API, environ={})) == ["gho_auth_token_github.com"]


KEYLESS = {"GITHUB_APP_ID": "1"}
KEYED = KEYLESS | {"GITHUB_APP_PRIVATE_KEY": SECRET}


@parametrize(
    "environ, file, message",
    [
        *values(
            r"""
                {} | b'# none\n' | contains no token
                {} | b'GITHUB_TOKEN=one\n' | contains invalid characters, such as quotes or NAME=
                {} | b'\xff' | the token file can't be read .not UTF-8 text
                {} | None | no GitHub token found: set GITHUB_TOKEN .*token_file=.*gh auth login
                KEYLESS | None | neither GITHUB_APP_PRIVATE_KEY nor
                KEYED | None | GITHUB_APP_INSTALLATION_ID: expected the number
            """,
            KEYED=KEYED,
            KEYLESS=KEYLESS,
        ),
        ({}, "tök\x07en\n".encode(), "contains invalid characters"),
        (
            KEYLESS | {"GITHUB_APP_PRIVATE_KEY_PATH": "absent"},
            None,
            "absent: the GitHub App's private key",
        ),
        (
            KEYED | {"GITHUB_APP_INSTALLATION_ID": "2"},
            None,
            "no token for the GitHub App's installation",
        ),
    ],
)
def test_sources_without_a_token(tmp_path, monkeypatch, environ, file, message):
    for name in ("GITHUB_TOKEN", "GITHUB_TOKENS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (environ | {"PATH": ""}).items():
        monkeypatch.setenv(name, value)
    (tmp_path / "tokens").write_bytes(file or b"")
    tokens = None if file is None else tmp_path / "tokens"
    with raises((ConfigError, AuthError), match=message) as error:
        gis_builder.plan("a/b", api_url="http://127.0.0.1:9", token_file=tokens)
    trace = "".join(traceback.format_exception(error.value))
    assert SECRET not in trace
    assert "tök" not in str(error.value)
    with config_error("token and token_file: give only one"):
        gis_builder.plan("a/b", token=SECRET, token_file=tmp_path / "tokens")


INSTALLATION = b'{"token": "ghs_installation", "expires_at": "2099-01-01T00:00:00Z"}'


def app_server(status=201, location="", body=INSTALLATION):
    """Serve an installation's token, or a redirect, for requests signed with a key."""

    def respond(path, headers):
        assert path == "/app/installations/2/access_tokens"
        assert headers["Authorization"].startswith("Bearer ey")
        return status, {"Content-Type": "application/json", "Location": location}, body

    return serving(respond)


@module_fixture
def app_environ(tmp_path_factory):
    """The environment of an app whose key is in a file."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    file = tmp_path_factory.mktemp("app") / "key.pem"
    file.write_bytes(
        key.private_bytes(
            Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()
        )
    )
    path, id_ = "GITHUB_APP_PRIVATE_KEY_PATH", "GITHUB_APP_INSTALLATION_ID"
    return {"GITHUB_APP_ID": "1", path: str(file), id_: "2"}


@table(r"""
    status, location, message
    301 | http://[ | \(ValueError\)
    # nothing is sent to another host
    301 | http://localhost:9/moved | \(RuntimeError\)
    201 | "" | \(BadAttributeException\)
    500 | "" | HTTP 500
""")
def test_redirects_and_invalid_responses_to_an_app(
    app_environ, status, location, message
):
    with app_server(status, location, b'{"token": [5]}') as url:
        (token,) = find_tokens(url, environ=app_environ)
        with raises(AuthError, match=message):
            token.reveal()


def test_an_app_uses_its_installation_token(app_environ):
    path = Path(app_environ["GITHUB_APP_PRIVATE_KEY_PATH"])
    app_environ = app_environ | {"GITHUB_APP_PRIVATE_KEY": path.read_text()}
    del app_environ["GITHUB_APP_PRIVATE_KEY_PATH"]
    with app_server() as url:
        (token,) = find_tokens(url, environ=app_environ)
        request = requests.Request("POST", f"{url}/graphql", auth=token).prepare()
    assert request.headers["Authorization"] == "Bearer ghs_installation"


def test_a_token_is_not_printed_copied_or_pickled():
    token = Token(SECRET, API)
    assert SECRET not in f"{token} {token!r} {[token]} {(token,)!s}"
    assert not hasattr(token, "__dict__") or SECRET not in str(vars(token))
    with raises(TypeError):
        pickle.dumps(token)
    with raises(TypeError):
        copy.deepcopy(token)
    assert token.mask(f"you sent {SECRET}") == "you sent ****"
    assert Token("t", API).mask("try") == "try"


def test_a_token_is_sent_only_to_its_origin():
    token = Token(SECRET, API)
    ours = requests.Request(
        "POST", "HTTPS://API.github.com:443/graphql", auth=token
    ).prepare()
    assert ours.headers["Authorization"] == f"Bearer {SECRET}"
    others = [f"{API}{more}" for more in (".evil.example", "@evil.example", ":8443")]
    for root in (*others, API.replace("https", "http")):
        theirs = requests.Request("POST", f"{root}/graphql", auth=token).prepare()
        assert "Authorization" not in theirs.headers


def test_plain_http_needs_permission():
    environ = {"GITHUB_TOKEN": SECRET}
    with config_error(r"over plain http, .* set crawl\.plain_http to true"):
        find_tokens("http://git.example", environ=environ)
    assert find_tokens("http://a.example", environ=environ, plain_http=True)
    for url in ("http://127.0.0.1:8", "http://[::1]"):
        assert find_tokens(url, environ=environ)


HEARD = []  # not a local variable, because a test searches those for the token


@pytest.fixture
def hostile():
    """The URL of a server that responds with the status in the path and echoes the token."""
    HEARD.clear()

    def respond(path, headers):
        HEARD.append(token := headers["Authorization"])
        status = int(path.split("/")[1])
        body = f'{{"message": "you sent {token}", "errors": [{{"message": "you sent {token}"}}]}}'.encode()
        more = {"Content-Length": str(len(body) + 9 * (status == 206))}
        if 300 <= status < 400:
            more["Location"] = f"http://{headers['Host']}/200/graphql"
        return status, more, body

    with serving(respond) as url:
        yield url


@parametrize("status", [200, 206, 301, 307, 400, 401, 403, 404, 429, 500, 502])
def test_no_error_output_or_store_contains_the_token(
    hostile, status, tmp_path, caplog, capfd
):
    caplog.set_level("DEBUG")
    settings = CrawlSettings(
        api_url=f"{hostile}/{status}",
        attempts=2,
        backoff_s=0.001,
        secondary_wait_s=0.001,
        timeout_s=2,
    )
    messages = []
    tokens = find_tokens(settings.api_url, environ={"GITHUB_TOKEN": SECRET})
    with (
        Store.open(tmp_path / "store.sqlite", create=True) as store,
        RunDisplay(lambda progress: messages.append(repr(progress))) as show,
        GitHub(settings, tokens, store, show) as github,
        raises(PairkitError) as error,
    ):
        github.check(["acme/rocket"])
    assert {*HEARD} == {f"Bearer {SECRET}"}
    assert len(HEARD) == 1 or not 300 <= status < 400  # redirects are not followed
    trace = "".join(
        traceback.TracebackException.from_exception(
            error.value, capture_locals=True
        ).format()
    )
    everything = [
        trace,
        repr(error.value.__dict__),
        caplog.text,
        *messages,
        *capfd.readouterr(),
    ]
    everything += [path.read_bytes().decode("latin-1") for path in tmp_path.iterdir()]
    assert not [text for text in everything if SECRET in text]


def test_proxies_and_netrc_are_ignored_for_this_machine(hostile, tmp_path, monkeypatch):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password wrong\n")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    settings = CrawlSettings(api_url=f"{hostile}/401")
    show = RunDisplay(progress=False)
    crawl = Crawl(settings, Token(SECRET, hostile), None, threading.Event(), show)
    with raises(AuthError):
        crawl.send(VIEWER)
    assert [f"Bearer {SECRET}"] == HEARD
