"""The page in a real browser; needs playwright and Chromium. `test_review_server` has the fast tests."""

import shutil
from collections import Counter

import pytest

import pairkit
from tests.pairkit.review_material import HOSTILE, Served, rows
from tests.support.shorthand import module_fixture, raises

playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed"
)
CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine"),
]
PAIRS = 30


@module_fixture
def browser():
    with playwright.sync_playwright() as running:
        found = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


def opened(browser, link, faults, **more):
    page = browser.new_context(**more).new_page()
    page.set_default_timeout(60_000)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("dialog", lambda dialog: faults.append(dialog.message))
    page.goto(link)
    page.wait_for_selector("#judging:not([hidden]), #end:not([hidden])")
    return page


def press(page, key):
    """Answer by key and wait for the next pair."""
    before = page.text_content("#count")
    page.keyboard.press(key)
    page.wait_for_function(
        "before => document.getElementById('count').textContent !== before", arg=before
    )


def test_judging_by_keys_and_a_killed_server(browser, tmp_path):
    dataset, faults = tmp_path / "d", list[str]()
    hostile = [
        {"text1": text, "text2": f"{text} again", "label": 1} for text in HOSTILE
    ]
    pairkit.write(pairkit.read(rows(PAIRS - len(hostile)) + hostile), dataset)
    served = Served(dataset, "--n", str(PAIRS), "--reviewer", "ann,bob")
    ann, bob = (opened(browser, served.links[name], faults) for name in ("ann", "bob"))
    # Not left in the address.
    assert served.links["ann"].partition("#")[2] not in ann.url
    press(bob, "n")
    ann.keyboard.press("c")
    ann.keyboard.type("yes, no, undo")  # typing in the note doesn't answer
    ann.keyboard.press("Enter")
    press(ann, "n")
    ann.keyboard.press("z")
    playwright.expect(ann.locator("#status")).to_contain_text("Undone: no")
    assert ann.input_value("#note") == "yes, no, undo"
    ann.keyboard.press("Escape")
    served.kill()
    before = ann.text_content("#count")
    ann.keyboard.press("y")  # while no server runs
    ann.wait_for_selector("#trouble:not([hidden])")
    ann.keyboard.press("n")  # no effect, as the pair is the same
    served.start()
    ann.wait_for_function(
        "before => document.getElementById('count').textContent !== before", arg=before
    )
    assert ann.is_hidden("#trouble")
    for number in range(PAIRS - 1):
        press(ann, "ynu"[number % 3])
    assert f"All of your {PAIRS} pairs" in str(ann.text_content("#ended"))
    served.kill()
    kept = pairkit.review(dataset).judgements()
    assert Counter(kept["person"]) == {"ann": PAIRS, "bob": 1}
    assert kept.select("person", "pair_id").is_unique().all()
    assert faults == []


def test_results_are_judged_by_keys(browser, tmp_path):
    about = {"label": 0.5, "query_top": 1, "query_results": 3, "query_share": 1.0}
    sheet = [
        {"text1": f"query {query}", "text2": f"result {query} {place}", **about}
        for query in range(4)
        for place in "abc"
    ]
    review, faults = pairkit.review(sheet, tmp_path / "r.review"), list[str]()
    with review.serve(["ann"], port=0) as server:
        page = opened(
            browser, server.links["ann"], faults, viewport={"width": 390, "height": 780}
        )
        buttons = page.locator("#results button")

        def place_of(letter):
            texts = page.locator("#results .text").all_text_contents()
            return next(
                place for place, text in enumerate(texts, 1) if text.endswith(letter)
            )

        page.keyboard.press("Enter")
        playwright.expect(page.locator("#trouble")).to_contain_text(
            "press 0 if none fits"
        )
        for letter in "aab":  # the second one removes the mark
            page.keyboard.press(str(place_of(letter)))
        page.keyboard.press("9")  # no such result
        press(page, "Enter")
        assert page.is_hidden("#trouble")
        press(page, "0")
        # Back to the second query, and to the first one with its mark.
        press(page, "Backspace")
        press(page, "ArrowLeft")
        playwright.expect(buttons.nth(place_of("b") - 1)).to_have_attribute(
            "aria-pressed", "true"
        )
        page.keyboard.press(str(place_of("c")))
        press(page, " ")
        press(page, "n")
        buttons.nth(place_of("a") - 1).click()
        press(page, "Enter")  # the click doesn't keep the focus
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        press(page, "u")
        assert "All of your 4 queries" in str(page.text_content("#ended"))
        page.context.close()
    judgements = review.judgements()
    pairs = pairkit.read(review.path)["test"]
    fitting = pairs.filter(label=1)["text2"].str.slice(-1).to_list()
    assert Counter(judgements["answer"]) == {"yes": 3, "no": 6, "unsure": 3}
    assert sorted(fitting) == ["a", "b", "c"]
    assert faults == []


def test_content_security_policy(browser, tmp_path):
    with pairkit.review(rows(12), tmp_path / "r.review").serve(
        ["ann"], port=0
    ) as server:
        page = opened(browser, server.links["ann"], [])
        for attempt in (
            "document.body.innerHTML = '<b>x</b>'",
            "fetch('http://127.0.0.1:9/')",
            "document.createElement('script').src = '/x.js'",
        ):
            with raises(
                playwright.Error, match=r"TrustedHTML|TrustedScriptURL|Failed to fetch"
            ):
                page.evaluate(f"async () => {{ return {attempt} }}")
        page.context.close()
