"""Settings of a crawl. Waiting times are settings so that tests can shorten them."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from pydantic import Field, field_validator

from pairkit.base.settings import Settings
from pairkit.base.system.address import Address, read_address

# Phrases that are searched in the comments of closed issues, chosen on rust-lang/rust by the number of
# duplicates per fetched thread (benchmarks/README.md). GitHub's search matches whole words. "duplicate of" is
# for repositories where "duplicate" is skipped because a template contains it.
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
    # Misspellings and other languages
    "duplcate", "dupilcate", "duplciate", "dulpicate", "duplicat", "dublicate", "duplikat", "doppelt",
    "doublon", "duplicado", "duplicada", "duplicato", "дубликат", "重复", "重複", "중복",
)  # fmt: skip
TITLE_WORDS = ("duplicate", "dup", "dupe")

# Phrases that are searched in bodies. They are longer, because issue templates mention duplicates.
BODY_PHRASES = ("duplicate of", "dup of", "dupe of", "same issue as", "same problem as")


def read_root(url: str) -> Address:
    """Parse the root URL of GitHub's API."""
    return read_address(url, "api_url", "https://api.github.com")


class CrawlSettings(Settings):
    """The crawl: server, strategy, batch sizes, retries and waits."""

    api_url: str = "https://api.github.com"  # root URL of the server's API
    plain_http: bool = False  # allow sending the token to another machine over unencrypted http
    strategy: Literal["search", "all"] = "search"  # search: likely duplicates; all: every issue
    # sweep a repository instead of searching it if that takes no more queries
    all_if_small: bool = True
    # also crawl private repositories
    include_private: bool = False

    phrases: tuple[str, ...] = PHRASES  # searched in the comments of closed issues
    title_words: tuple[str, ...] = TITLE_WORDS  # searched in titles
    body_phrases: tuple[str, ...] = BODY_PHRASES  # searched in bodies
    # skip a phrase that matches more than this share of the issues: it is from a bot or a template
    max_phrase_share: float = Field(default=0.3, gt=0, le=1)
    label_query: str = "dup"  # also search labels whose name contains this

    # threads in one query; 49 threads of 3 connections cost one point (connections / 100, rounded)
    thread_batch: int = Field(default=49, ge=1, le=100)
    issue_batch: int = Field(default=100, ge=1, le=100)  # issues in one query
    check_batch: int = Field(default=25, ge=1, le=50)  # repositories in one query
    search_batch: int = Field(default=8, ge=1, le=20)  # searches in one query
    comments_inline: int = Field(default=30, ge=1, le=100)  # comments fetched together with their issue
    events_inline: int = Field(default=20, ge=1, le=100)  # events fetched together with their issue
    labels_inline: int = Field(default=10, ge=1, le=100)  # labels fetched together with their issue
    search_limit: int = Field(default=1000, ge=1)  # maximum number of results of one search

    # seconds for one whole response; GitHub itself times out after 10
    timeout_s: float = Field(default=30.0, gt=0)
    attempts: int = Field(default=8, ge=1)  # consecutive failures before a repository fails in this run
    first_attempts: int = Field(default=4, ge=1)  # the same before the server's first response
    # seconds to wait after the first failure; doubles, with jitter
    backoff_s: float = Field(default=1.0, ge=0)
    secondary_wait_s: float = Field(
        default=60.0, ge=0
    )  # seconds to wait if the server requests no time; doubles
    max_wait_s: float = Field(default=3900.0, ge=0)  # a longer wait ends the run, which can be resumed
    seed: int = 42  # random seed of the jitter of waits

    @field_validator("api_url")
    @classmethod
    def _is_root(cls, url: str) -> str:
        return read_root(url).url

    @property
    def address(self) -> Address:
        """The root URL of the server's API."""
        return read_root(self.api_url)

    @property
    def graphql_address(self) -> Address:
        """The parent of `/graphql`; on GitHub Enterprise it is `/api`, not `/api/v3`."""
        root = self.address
        is_enterprise = root.path.endswith("/api/v3")
        return replace(root, path=root.path.removesuffix("/v3")) if is_enterprise else root

    @property
    def graphql_url(self) -> str:
        """The URL for queries."""
        return f"{self.graphql_address.url}/graphql"
