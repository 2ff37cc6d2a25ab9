from __future__ import annotations

import http.client
import socket
import threading
import time
from pathlib import Path

import pytest
import requests

from gis_builder._emulator import serve
from pairkit.errors import ConfigError, DataError

HEADERS = {"Authorization": "bearer any"}


def test_counts_what_it_does(tiny_dump: Path) -> None:
    with serve(tiny_dump) as server:
        requests.get(f"{server.url}/repos/acme/rocket/issues/2/comments", headers=HEADERS, timeout=10)
        requests.get(f"{server.url}/repos/acme/rocket/issues/4/comments", headers=HEADERS, timeout=10)
        stats = requests.get(f"{server.url}/_emulator/stats", timeout=10).json()
        assert stats == {
            "requests": 2,
            "points": 0,
            "not_modified": 0,
            "faults": {},
            "paths": {"/repos/acme/rocket/issues/N/comments": 2},
        }
        assert server.stats.requests == 2


def test_a_connection_serves_many_requests(tiny_dump: Path) -> None:
    with serve(tiny_dump) as server:
        connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=10)
        for method in ("GET", "HEAD", "GET"):
            connection.request(method, "/rate_limit", headers=HEADERS)
            response = connection.getresponse()
            assert response.status == 200
            assert (response.read() == b"") is (method == "HEAD")
            assert response.headers["x-github-request-id"].startswith("E0E0")


def test_latency_is_at_least_what_was_asked(tiny_dump: Path) -> None:
    with serve(tiny_dump, latency_s=0.1) as server:
        started = time.monotonic()
        requests.get(f"{server.url}/rate_limit", headers=HEADERS, timeout=10)
        assert time.monotonic() - started >= 0.1


def test_nothing_answers_after_closing(tiny_dump: Path) -> None:
    with requests.Session() as session:
        with serve(tiny_dump) as server:
            assert session.get(f"{server.url}/rate_limit", headers=HEADERS, timeout=10).ok
        with pytest.raises(requests.ConnectionError):
            session.get(f"{server.url}/rate_limit", headers=HEADERS, timeout=10)
        server.close()  # twice is harmless


def test_several_folders_make_one_github(tiny_dump: Path) -> None:
    with serve([tiny_dump / "acme/rocket", tiny_dump / "acme/fuel"]) as server:
        names = {repository.name for repository in server.catalogue.repositories}
        assert names == {"acme/rocket", "acme/fuel"}


def test_it_is_waited_for_until_it_is_closed(tiny_dump: Path) -> None:
    with serve(tiny_dump) as server:
        thread = threading.Thread(target=server.wait)
        thread.start()
        assert requests.get(f"{server.url}/rate_limit", headers=HEADERS, timeout=10).ok
        assert thread.is_alive()
    thread.join(10)
    assert not thread.is_alive()


def test_clients_at_the_same_time(tiny_dump: Path) -> None:
    query = {"query": '{ search(type: ISSUE, query: "issue", first: 9) { issueCount } }'}
    seen: list[int] = []

    def work(url: str) -> None:
        for _ in range(5):
            answer = requests.post(f"{url}/graphql", json=query, headers=HEADERS, timeout=10).json()
            seen.append(answer["data"]["search"]["issueCount"])

    with serve(tiny_dump) as server:
        threads = [threading.Thread(target=work, args=(server.url,)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(seen) == 30
        assert len(set(seen)) == 1
        assert server.stats.points == 30


def test_bad_settings(tiny_dump: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="replicate is 0"):
        serve(tiny_dump, replicate=0)
    with pytest.raises(DataError, match="no such file or folder"):
        serve(tmp_path / "none")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ConfigError, match="choose another port"):
            serve(tiny_dump, port=taken.getsockname()[1])


def test_a_malformed_request_is_refused(tiny_dump: Path) -> None:
    with serve(tiny_dump) as server:
        connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=10)
        connection.putrequest("POST", "/graphql")
        connection.putheader("content-length", "many")
        connection.endheaders()
        assert connection.getresponse().status == 400


def test_an_app_gets_a_token(tiny_dump: Path) -> None:
    with serve(tiny_dump) as server:
        url = f"{server.url}/app/installations/7/access_tokens"
        granted = requests.post(url, headers={"Authorization": "Bearer a.b.c"}, timeout=10)
        assert granted.status_code == 201
        assert granted.json()["token"] == "ghs_emulated"
