"""A dataset to review, and a client that acts as the page."""

import json
import socket
import subprocess
import sys
import uuid
from contextlib import contextmanager

import requests

HOSTILE = [
    "<script>alert(1)</script><img src=x onerror=alert(2)>",
    "</pre></div><style>body{display:none}</style>",
    "\u202eright to left\u202c and \u0645\u0631\u062d\u0628\u0627 and \u0000 and \x1b[31m",
    "\U0001f469\u200d\U0001f4bb four bytes \U00020000",
    "```\n" + "a `b` **c** > d\n" * 4000,  # 60 kB
    "[a](javascript:alert(3)) javascript:alert(4)",
]


def rows(number=60):
    """Pairs of issues: duplicates by maintainers and others, and negatives."""
    made = []
    for place in range(number):
        label = int(place % 3 != 0)
        kind = "closer_comment" if place % 5 else "other_comment"
        made.append({
            "text1": f"Editor {place} crashes\n\nIt stops when file {place} is saved.",
            "text2": f"Saving ends editor {place}\n\nNo trace of file {place} is left.",
            "label": label,
            "repo": "a/b",
            "url1": f"https://example.org/{place}",
            "relation": "duplicate" if label else None,
            "evidence": {"kind": kind, "url": f"https://example.org/{place}#c", "who": "ann", "when": "2020"}
            if label
            else None,
            "negative_kind": None if label else "random",
        })  # fmt: skip
    return made


class Reviewer:
    """A reviewer with a link."""

    def __init__(self, link):
        self.url, _, token = link.partition("/#")
        self.session = requests.Session()
        self.session.headers["Authorization"] = f"Bearer {token}"

    def state(self):
        """The state that the page shows."""
        return self.checked(self.session.get(f"{self.url}/api/state", timeout=30))

    def post(self, path, body):
        """Send a request as the page does."""
        return self.session.post(f"{self.url}/api/{path}", json=body, timeout=30)

    def say(self, answer, **more):
        """Judge the current pair."""
        return self.checked(
            self.post("judge", self.judgement(self.state(), answer, **more))
        )

    @staticmethod
    def judgement(state, answer, **more):
        """A judgement of the pair, or of all results of the query, in a state."""
        pair = state["pair"]
        answers = dict.fromkeys(pair.get("ids", [pair["id"]]), answer)
        return {"key": str(uuid.uuid4()), "answers": answers, "seconds": 1} | more

    @staticmethod
    def checked(answer):
        """The state in a response."""
        answer.raise_for_status()
        return answer.json()


class Served:
    """`pairs review` in a process of its own, which can be killed and started again at its port."""

    def __init__(self, dataset, *flags):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = f"-m pairkit review {dataset} --json --quiet --port {port}"
        self._command = [sys.executable, *command.split(), *flags]
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.links = json.loads(self.process.stdout.readline())["links"]

    def kill(self):
        self.process.kill()
        self.process.communicate()


@contextmanager
def ann_at(review):
    """The reviewer Ann at a server of a review."""
    with review.serve(["ann"], port=0) as server:
        yield Reviewer(server.links["ann"])


def text_in(shown):
    """The text on one side of the page."""
    return "".join(text for text, _ in shown["pieces"])


def judge_all(review, answer=None, person="ann", **more):
    """One person judges every pair by its texts; by default all are the same."""
    with review.serve([person], port=0) as server:
        reviewer = Reviewer(server.links[person])
        state = reviewer.state()
        same = "4" if state["asked"] == "grades" else "yes"
        while (pair := state["pair"]) is not None:
            first, *others = map(text_in, pair["texts"])
            answers = {
                pair_id: answer(f"{first}\n{other}") if answer else same
                for pair_id, other in zip(pair["ids"], others, strict=True)
            }
            judgement = reviewer.judgement(state, same, answers=answers, **more)
            state = reviewer.checked(reviewer.post("judge", judgement))
