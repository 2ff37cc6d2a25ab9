"""The page in a real browser: judged by keys, killed in the middle, two people, hostile texts, three widths.

Needs playwright and Debian's chromium, which `dev` does not bring for their size; `test_review_server` is the
fast twin, which speaks the page's protocol.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pairkit
from tests.pairkit.review_material import HOSTILE, rows

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine"),
]
PAIRS = 200


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as running:
        found = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


class Served:
    """`pairs review` in a process of its own, which can be killed and started again at its port."""

    def __init__(self, dataset: Path, *flags: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self._command = [sys.executable, "-m", "pairkit", "review", str(dataset), "--json", "--quiet"]
        self._command += ["--port", str(port), *flags]
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.links: dict[str, str] = json.loads(self._process.stdout.readline())["links"]

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def opened(browser: Any, link: str, faults: list[str], **more: Any) -> Any:
    page = browser.new_context(**more).new_page()
    page.set_default_timeout(60_000)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("dialog", lambda dialog: faults.append(dialog.message))
    page.goto(link)
    page.wait_for_selector("#judging:not([hidden]), #end:not([hidden])")
    return page


def press(page: Any, key: str) -> None:
    """Answer by a key, and wait until the page shows the next pair."""
    before = page.text_content("#count")
    page.keyboard.press(key)
    page.wait_for_function("before => document.getElementById('count').textContent !== before", arg=before)


def test_two_people_judge_by_keys_and_a_kill_in_the_middle_changes_nothing(
    browser: Any, tmp_path: Path
) -> None:
    dataset = tmp_path / "d"
    hostile = [{"text1": text, "text2": f"{text} again", "label": 1} for text in HOSTILE]
    pairkit.write(pairkit.read(rows(PAIRS - len(hostile)) + hostile), dataset)
    served = Served(dataset, "--n", str(PAIRS), "--reviewer", "ann,bob")
    faults: list[str] = []
    ann = opened(browser, served.links["ann"], faults)
    bob = opened(browser, served.links["bob"], faults)
    assert served.links["ann"].partition("#")[2] not in ann.url  # not left in the address
    for number in range(90):
        press(ann, "ynu"[number % 3])
    for _ in range(10):
        press(bob, "n")
    served.kill()
    ann.keyboard.press("y")  # which no server hears
    ann.wait_for_selector("#trouble:not([hidden])")
    ann.keyboard.press("n")  # of no effect: the pair is still the same
    before = ann.text_content("#count")
    served.start()
    ann.wait_for_function("before => document.getElementById('count').textContent !== before", arg=before)
    assert ann.is_hidden("#trouble")
    assert "91 of 200 judged" in str(ann.text_content("#progress"))
    served.kill()
    bob.keyboard.press("y")
    bob.wait_for_selector("#trouble:not([hidden])")
    context = bob.context
    bob.close()  # before it could send
    served.start()
    bob = context.new_page()
    bob.goto(served.links["bob"])
    bob.wait_for_selector("#judging:not([hidden])")
    assert "11 of 200 judged" in str(bob.text_content("#progress"))
    for number in range(PAIRS - 91):
        press(ann, "ynu"[number % 3])
    assert ann.is_visible("#end")
    assert "All 200 pairs" in str(ann.text_content("#ended"))
    served.kill()
    kept = pairkit.review(dataset).judgements()
    assert Counter(kept["person"]) == {"ann": PAIRS, "bob": 11}
    assert kept.select("person", "pair_id").is_unique().all()
    assert Counter(kept.filter(person="bob")["answer"]) == {"n" + "o": 10, "yes": 1}
    assert faults == []


def test_keys_undo_notes_relations_marks_and_folds(browser: Any, tmp_path: Path) -> None:
    dataset = tmp_path / "d"
    long = [row | {"text1": row["text1"] + "\nmore and more" * 300} for row in rows(12)]
    pairkit.write(long, dataset)
    served = Served(dataset, "--n", "12", "--reviewer", "ann")
    faults: list[str] = []
    page = opened(browser, served.links["ann"], faults)
    assert page.locator(".fold").count() == 1
    page.keyboard.press("f")
    assert page.locator(".fold").count() == 0
    page.keyboard.press("r")
    assert page.get_attribute("#relation-related", "aria-pressed") == "true"
    page.keyboard.press("c")
    page.keyboard.type("yes, no, undo")  # letters of the note are no answers
    page.keyboard.press("Enter")
    first = page.text_content("#text0")
    press(page, "n")
    assert "Saved: no" in str(page.text_content("#status"))
    page.keyboard.press("z")
    playwright.expect(page.locator("#status")).to_contain_text("Taken back: no")
    assert page.input_value("#note") == "yes, no, undo"
    assert page.get_attribute("#relation-related", "aria-pressed") == "true"
    assert page.text_content("#text0").startswith(first[:40])
    page.keyboard.press("Escape")
    marks = [page.get_attribute("body", "data-marks")]
    for _ in range(3):
        page.keyboard.press("m")
        marks.append(page.get_attribute("body", "data-marks"))
    assert {*marks} == {"shared", "own", "both", "none"}
    page.click("details.help summary")
    page.uncheck("#shortcuts")
    page.locator("#main").focus()
    page.keyboard.press("y")
    assert page.text_content("#progress").startswith("0 of 12")
    page.click("#answer-yes")
    playwright.expect(page.locator("#progress")).to_contain_text("1 of 12")
    assert faults == []
    served.kill()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 800, 1280])
def test_nothing_stands_beyond_the_edge_and_axe_finds_no_fault(
    browser: Any, tmp_path: Path, width: int, scheme: str
) -> None:
    axe = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    script = next(Path(axe.__file__).parent.rglob("axe.min.js")).read_text(encoding="utf-8")
    store = tmp_path / "r.review"
    faults: list[str] = []
    with pairkit.review(rows(40), store, n=12).serve(["ann"], port=0) as server:
        look = {"viewport": {"width": width, "height": 844}, "color_scheme": scheme, "bypass_csp": True}
        page = opened(browser, server.links["ann"], faults, **look)
        press(page, "y")
        page.keyboard.press("c")
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.evaluate(script)
        found = page.evaluate("axe.run(document)")
        assert [(fault["id"], fault["nodes"][0]["html"]) for fault in found["violations"]] == []
        assert len(found["passes"]) > 30
        page.context.close()
    assert faults == []


def test_the_policy_holds_in_the_browser(browser: Any, tmp_path: Path) -> None:
    with pairkit.review(rows(12), tmp_path / "r.review").serve(["ann"], port=0) as server:
        page = opened(browser, server.links["ann"], [])
        told: list[str] = []
        page.on("console", lambda message: told.append(message.text))
        for attempt in (
            "document.body.innerHTML = '<b>x</b>'",
            "fetch('http://127.0.0.1:9/')",
            "document.createElement('script').src = '/x.js'",
        ):
            with pytest.raises(playwright.Error, match=r"TrustedHTML|TrustedScriptURL|Failed to fetch"):
                page.evaluate(f"async () => {{ return {attempt} }}")
        for tag, place in (("img", "/x.png"), ("iframe", server.url)):
            page.evaluate(
                "([tag, src]) => document.body.append(Object.assign(document.createElement(tag), {src}))",
                [tag, place],
            )
        page.wait_for_timeout(500)
        page.context.close()
    for directive in ("connect-src", "img-src", "TrustedHTML", "TrustedScriptURL"):
        assert any(directive in message for message in told), directive


def test_two_people_in_two_tabs_of_one_browser_stay_themselves(browser: Any, tmp_path: Path) -> None:
    with pairkit.review(rows(20), tmp_path / "r.review", n=9).serve(["ann", "bob"], port=0) as server:
        context = browser.new_context()
        tabs = {name: context.new_page() for name in server.links}
        for name, tab in tabs.items():
            tab.goto(server.links[name])
            playwright.expect(tab.locator("#person")).to_have_text(name)
        press(tabs["ann"], "y")
        for name, tab in tabs.items():
            tab.reload()
            playwright.expect(tab.locator("#person")).to_have_text(name)
            playwright.expect(tab.locator("#progress")).to_contain_text(f"{int(name == 'ann')} of 9")
        tabs["bob"].goto(server.links["ann"])  # one more tab of hers
        playwright.expect(tabs["bob"].locator("#person")).to_have_text("ann")
        stranger = context.new_page()
        stranger.goto(server.url)
        playwright.expect(stranger.locator("#trouble")).to_contain_text("not valid")
        context.close()
