import json
import re
import shutil
import socket
import threading
from collections import Counter
from pathlib import Path

import pytest
import requests

import pairkit
from pairkit import Review
from tests.contract.conftest import run_pairs
from tests.pairkit.review_material import (
    HOSTILE,
    Reviewer,
    Served,
    ann_at,
    judge_all,
    rows,
    text_in,
)
from tests.support.shorthand import (
    config_error,
    each_line,
    module_fixture,
    parametrize,
    table,
    text_table,
)


@pytest.fixture
def review(tmp_path):
    return pairkit.review(rows(40), tmp_path / "r.review", n=12)


@pytest.fixture
def server(review):
    with review.serve(["ann", "bob"], port=0) as running:
        yield running


@module_fixture
def lasting(tmp_path_factory):
    """A shared server for tests without changes."""
    folder = tmp_path_factory.mktemp("lasting")
    review = pairkit.review(rows(40), folder / "r.review", n=12)
    with review.serve(["ann", "bob"], port=0) as running:
        yield running, review


def people(server):
    return Reviewer(server.links["ann"]), Reviewer(server.links["bob"])


def test_judging_all_pairs(server, review):
    ann, _ = people(server)
    state = ann.state()
    assert state["question"] == "Do both issues describe the same problem?"
    assert state["relations"] == ["duplicate", "superseded", "related"]
    seen = set()
    for number in range(12):
        assert state["progress"]["done"] == number
        output = json.dumps(state["pair"])
        assert not any(
            word in output
            for word in ("closer_comment", "example.org", "label", "random", "a/b")
        )
        seen.add(state["pair"]["id"])
        state = ann.say(
            "yes" if number % 2 else "no",
            relation="related",
            note="why \u2028 \ud83d\ude00",
        )
        assert state["last"]["origin"]["repo"] == "a/b"  # shown after the judgement
        assert state["progress"]["seconds_each"] == 1
    assert state["pair"] is None
    assert len(seen) == 12
    kept = review.judgements()
    assert Counter(kept["answer"]) == {"yes": 6, "no": 6}
    assert set(kept["note"]) == {"why \u2028 \U0001f600"}
    assert set(kept["relation"]) == {"related"}


def test_two_tabs(server, review):
    ann, _ = people(server)
    one, other = ann.state(), ann.state()
    first = ann.judgement(one, "yes")
    assert ann.post("judge", first).status_code == 200
    late = ann.post("judge", ann.judgement(other, "no"))
    assert late.status_code == 409
    assert "another tab" in late.json()["error"]
    assert late.json()["pair"]["id"] != one["pair"]["id"]  # the tab shows the next pair
    assert ann.post("judge", first).status_code == 200  # sent again
    reused = ann.post("judge", ann.judgement(ann.state(), "no", key=first["key"]))
    assert reused.status_code == 409
    assert "another judgement" in reused.json()["error"]
    assert review.judgements()["answer"].to_list() == ["yes"]


def test_undo_and_skip(server, review):
    ann, _ = people(server)
    state = ann.say("yes", note="first thought", relation="duplicate")
    before = state["last"]
    assert (before["note"], before["relation"]) == ("first thought", "duplicate")
    state = ann.post("undo", {"key": before["key"]}).json()
    assert state["pair"]["id"] == before["pair"]
    assert state["last"] is None
    while state["pair"] is not None:
        state = ann.say("skip")
        assert "origin" not in state["last"]  # the pair may be shown again
    progress = {"done": 0, "all": 12, "skipped": 12, "seconds_each": None}
    assert state["progress"] == progress
    state = ann.post("skipped", {}).json()
    assert state["progress"]["skipped"] == 0
    assert state["pair"] is not None
    assert review.judgements().is_empty()


def test_hostile_texts(tmp_path):
    pairs = [
        {"text1": text, "text2": f"{text} and more", "label": 1} for text in HOSTILE
    ]
    seen = set()
    with ann_at(pairkit.review(pairs, tmp_path / "r.review", n=1000)) as ann:
        state = ann.state()
        while state["pair"] is not None:
            seen.add(tuple(map(text_in, state["pair"]["texts"])))
            state = ann.say("yes")
    shown = [re.sub("[\0\x1b\u202c\u202e]", "\ufffd", text) for text in HOSTILE]
    assert seen == {(text, f"{text} and more") for text in shown}


@table("""
    path, mode, status
    / | navigate | 200
    / | no-cors | 403
    /api/state | navigate | 403
""")
def test_links_from_other_sites_lead_only_to_the_page(lasting, path, mode, status):
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": mode}
    answer = requests.get(f"{lasting[0].url}{path}", headers=headers, timeout=30)
    assert answer.status_code == status


def test_page_and_headers(lasting):
    server, _ = lasting
    answer = requests.get(server.url, timeout=30)
    policy = answer.headers["content-security-policy"]
    none = ("default-src", "frame-ancestors", "trusted-types")
    assert all(f"{part} 'none'" in policy for part in none)
    assert "connect-src 'self'" in policy
    assert "unsafe" not in policy
    assert not re.findall(
        r"(?:src|href)=(?!\"data:,\")|https?://|@import|innerHTML|document\.write",
        answer.text,
    )
    assert "editor" not in answer.text.lower()  # no text of the dataset is in the page
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    assert not {"set-cookie", "access-control-allow-origin", "server"} & {
        *map(str.lower, answer.headers)
    }


@parametrize(
    "status, header",
    text_table(f"""
        421 | Host: attacker.example
        421 | Host: 127.0.0.1
        421 | Host: 127.0.0.1:1
        403 | Origin: http://attacker.example
        403 | Origin: null
        403 | Sec-Fetch-Site: cross-site
        403 | Sec-Fetch-Site: same-site
        415 | Content-Type: text/plain
        415 | Content-Type: application/x-www-form-urlencoded
        401 | Authorization:
        401 | Authorization: Bearer
        401 | Authorization: Bearer {"A" * 32}
        401 | Authorization: Basic YW5uOmFubg==
        401 | Authorization: Bearer é
    """),
)
def test_other_requests_are_refused(lasting, status, header):
    server, review = lasting
    ann, _ = people(server)
    body = json.dumps(ann.judgement(ann.state(), "yes"))
    mine = {
        "Content-Type": "application/json",
        "Authorization": str(ann.session.headers["Authorization"]),
    }
    name, _, value = header.partition(":")
    mine[name] = value.strip()
    answer = requests.post(
        f"{server.url}/api/judge", data=body, headers=mine, timeout=30
    )
    assert answer.status_code == int(status)
    assert answer.headers["x-frame-options"] == "DENY"
    assert review.judgements().is_empty()


def _bodies():
    deep = b"[" * 8000 + b"]" * 8000
    good = {"key": "k" * 8, "answers": {"x": "yes"}, "seconds": 1}
    odd = [
        good,  # an unknown pair
        {**good, "seconds": -1},
        {**good, "key": "../../etc"},
        {**good, "more": 1},
        {**good, "answers": {}},
        {**good, "answers": {str(pair): "yes" for pair in range(10)}},
        {**good, "note": "x" * 2001},
    ]
    texts = [json.dumps(body).encode() for body in odd]
    texts += [b"{", b"\xff", deep, texts[0].replace(b"1}", b"NaN}")]
    endless = iter([b" " * 4096] * 50)  # without a length
    too_long = [b" " * ((16 << 10) + 1), endless]
    return [(text, 422) for text in texts] + [(body, 413) for body in too_long]


@parametrize("body, status", _bodies())
def test_invalid_bodies_change_nothing(lasting, body, status):
    server, review = lasting
    ann, _ = people(server)
    answer = ann.session.post(
        f"{server.url}/api/judge",
        data=body,
        headers={"Content-Type": "application/json"},
        timeout=30,
    )
    assert answer.status_code == status
    assert "Traceback" not in answer.text
    assert review.judgements().is_empty()
    assert ann.state()["pair"] is not None


@each_line("""
    path
    /../../etc/passwd
    /%2e%2e/page.js
    /docs
    //evil
""")
def test_other_paths(lasting, path):
    server, _ = lasting
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as raw:
        raw.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n".encode()
        )
        answer = b""
        while more := raw.recv(65536):
            answer += more
    assert answer.split()[1] in (b"404", b"400")
    assert b"root:" not in answer


def test_names_of_people(review):
    with config_error("a name of 1 to 60 letters"):
        review.serve([" "])
    with review.serve("eve", port=0) as running:
        assert [*running.links] == ["eve"]
    with review.serve(["<b>ann</b>", "\u202ebob"], port=0) as running:
        assert Reviewer(running.links["<b>ann</b>"]).state()["person"] == "<b>ann</b>"
        assert "\u202e" not in "".join(running.links)


def test_killed_server_keeps_judgements(tmp_path):
    dataset = tmp_path / "d"
    pairkit.write(rows(60), dataset)
    served = Served(dataset, "--n", "30", "--reviewer", "ann")
    link, acknowledged = served.links["ann"], []
    ann = Reviewer(link)
    for _ in range(10):
        body = ann.judgement(ann.state(), "yes")
        assert ann.post("judge", body).status_code == 200
        acknowledged.append(body["key"])
    # Without files beside it.
    copy = Path(shutil.copy(tmp_path / "d.review", tmp_path / "copy.review"))
    assert [*Review(copy).judgements()["key"]] == acknowledged
    pending = ann.judgement(ann.state(), "no")
    threading.Timer(0.002, served.process.kill).start()  # during judgements
    try:
        while True:
            ann.post("judge", pending)
            acknowledged.append(pending["key"])
            pending = ann.judgement(ann.state(), "no")
    except requests.RequestException:  # refused or interrupted
        served.kill()
    served.start()
    assert served.links["ann"] == link
    ann = Reviewer(link)
    # The page repeats unanswered requests with the same key, which may have been saved.
    assert ann.post("judge", pending).status_code in (
        200,
        422 if pending["key"] in acknowledged else 200,
    )
    while ann.state()["pair"] is not None:
        ann.say("yes")
    served.kill()
    kept = pairkit.review(dataset).judgements()
    assert {*acknowledged, pending["key"]} <= {*kept["key"]}
    assert kept.height == kept["pair_id"].n_unique() == 30


def test_report_and_apply_commands(tmp_path):
    dataset = tmp_path / "d"
    pairkit.write(rows(30), dataset)
    judge_all(pairkit.review(dataset, n=1000))
    output = run_pairs("review", dataset, "--report", "--card").out
    assert "inspected by hand: 100.0 %, precision 1.00 [" in output
    assert "evidence: random negative" in output
    assert "## Inspected by hand" in (dataset / "README.md").read_text()
    done = run_pairs("apply-review", dataset, "--out", tmp_path / "out", "--quiet")
    assert "left out: rejected by people 10" in done.out
    assert len(pairkit.read(tmp_path / "out")) == 20
