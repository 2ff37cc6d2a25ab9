"""What a person can set about a crawl; every wait is here, so that tests need not wait for real."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from pydantic import Field, field_validator

from pairkit.app.settings import Settings
from pairkit.system.address import Address, read_address

# Words of closings, each searched among the comments of closed issues. Chosen on rust-lang/rust by duplicates
# found per thread fetched: see benchmarks/README.md. A match is by whole words, as GitHub's search does it.
# "duplicate of" is there should the word alone turn out to be a template's.
PHRASES = (
    "duplicate", "duplicate of", "duplicates", "duplicated", "dup", "dups", "dupe", "dupes", "in favor of",
    "in favour of", "same as", "same issue", "same bug", "same problem", "same thing", "subsume", "subsumes",
    "subsumed", "superseded", "superceded", "superseeded", "supersedes", "replaced by", "replaced with",
    "covered by", "covers this", "instance of", "subset of", "special case of", "tracked in", "tracked by",
    "tracked on", "track this", "tracking issue", "tracking this", "identical to", "exactly the same",
    "folded into", "folding this", "merged into", "moving this", "over to", "continued in",
    "already reported", "already filed", "already open", "already tracked", "already an issue",
    "already a bug", "already been filed", "existing issue", "existing bug", "existing discussion",
    "another issue", "open bug", "known bug", "known issue", "filed as", "filed this already", "reported as",
    "already noted", "opened twice", "double post", "double filing", "subissue", "sub issue", "subbug",
    "sub bug", "subsection of", "just part of", "this is part of", "more general", "covers the",
    "replacing with", "rolling this", "closing for", "close this as", "discuss further", "this is basically",
    "this is essentially", "looks like this is", "oh this is", "whoops this is", "really is", "exactly like",
    "almost the same", "better description", "replace this", "replaces this", "to cover this",
    "this is covered", "about this already", "there is already", "reported this as", "known problem",
    "reposted", "is tracking", "tracked at", "falls under", "falling under",
    # Misspelt, and in the languages that the detector reads.
    "duplcate", "dupilcate", "duplciate", "dulpicate", "duplicat", "dublicate", "duplikat", "doppelt",
    "doublon", "duplicado", "duplicada", "duplicato", "дубликат", "重复", "重複", "중복",
)  # fmt: skip
TITLE_WORDS = ("duplicate", "dup", "dupe")

# The same among the bodies, where reporters note it themselves. Longer, since templates of reports speak of
# duplicates too.
BODY_PHRASES = ("duplicate of", "dup of", "dupe of", "same issue as", "same problem as")


def read_root(url: str) -> Address:
    """The root of GitHub's API as a person wrote it."""
    return read_address(url, "api_url", "https://api.github.com")


class CrawlSettings(Settings):
    """The crawl: where, how, how much at once and how patiently."""

    api_url: str = "https://api.github.com"  # the root of the server's API
    plain_http: bool = False  # send the token over http to another machine, where anybody can read it
    strategy: Literal["search", "sweep"] = "search"  # search: likely duplicates; sweep: every issue
    # sweep a repository that takes fewer queries to sweep than to search: nothing can be missed there
    sweep_small: bool = True
    # crawl private repositories too; in a dataset they are more often a mistake than a wish
    include_private: bool = False

    phrases: tuple[str, ...] = PHRASES  # searched among the comments of closed issues
    title_words: tuple[str, ...] = TITLE_WORDS  # searched in titles
    body_phrases: tuple[str, ...] = BODY_PHRASES  # searched in bodies
    # leave out a phrase that more than this share of the issues have: it is a bot's or a template's
    max_phrase_share: float = Field(default=0.3, gt=0, le=1)
    label_query: str = "dup"  # labels whose name holds this are searched as well

    # threads asked for in one query, which costs its connections / 100, rounded: 49 of 3 each are one point
    thread_batch: int = Field(default=49, ge=1, le=100)
    issue_batch: int = Field(default=100, ge=1, le=100)  # issues asked for in one query
    check_batch: int = Field(default=25, ge=1, le=50)  # repositories asked for in one query
    search_batch: int = Field(default=8, ge=1, le=20)  # searches in one query
    comments_inline: int = Field(default=30, ge=1, le=100)  # comments that come with their issue
    events_inline: int = Field(default=20, ge=1, le=100)  # the same of events
    labels_inline: int = Field(default=10, ge=1, le=100)  # the same of labels
    search_limit: int = Field(default=1000, ge=1)  # the most results that a search has

    # seconds for one whole answer; GitHub itself gives up after 10
    timeout_s: float = Field(default=30.0, gt=0)
    attempts: int = Field(default=8, ge=1)  # failures in a row before the repository is given up for now
    first_attempts: int = Field(default=4, ge=1)  # the same while the server has never answered
    # seconds to wait after the first failure; doubles, with jitter
    backoff_s: float = Field(default=1.0, ge=0)
    secondary_wait_s: float = Field(default=60.0, ge=0)  # seconds to wait when a limit names no time; doubles
    max_wait_s: float = Field(default=3900.0, ge=0)  # a longer wait ends the run; running again resumes
    seed: int = 42  # decides the jitter of waits only

    @field_validator("api_url")
    @classmethod
    def _is_root(cls, url: str) -> str:
        return read_root(url).url

    @property
    def address(self) -> Address:
        """The server's root."""
        return read_root(self.api_url)

    @property
    def graphql_address(self) -> Address:
        """The root that `/graphql` is below; GitHub Enterprise keeps it beside `/api/v3`."""
        root = self.address
        is_enterprise = root.path.endswith("/api/v3")
        return replace(root, path=root.path.removesuffix("/v3")) if is_enterprise else root

    @property
    def graphql_url(self) -> str:
        """Where queries are posted."""
        return f"{self.graphql_address.url}/graphql"
