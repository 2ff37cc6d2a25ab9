"""Settings of a crawl. Waiting times are settings so that tests can shorten them."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from pydantic import field_validator

from pairkit.base.errors import ConfigError
from pairkit.base.settings import Settings, setting
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
    root = read_address(url, "api_url", "https://api.github.com")
    if root.path.endswith("/graphql"):
        raise ConfigError(
            f"api_url is {root.url}: expected the API's root, such as"
            " https://api.github.com or https://git.example.com/api/v3"
        )
    return root


class CrawlSettings(Settings):
    """The crawl: server, strategy, batch sizes, retries and waits."""

    api_url: str = setting("https://api.github.com", "Root URL of the server's API.")
    plain_http: bool = setting(
        False, "Allow sending the token to another machine over unencrypted http."
    )
    strategy: Literal["search", "all"] = setting(
        "search",
        "Issues to fetch: search (likely duplicates) or all (every issue with its comments).",
    )
    all_if_small: bool = setting(
        True,
        "Fetch all issues of a repository instead of searching it if that takes no more queries.",
    )
    include_private: bool = setting(False, "Also crawl private repositories.")

    phrases: tuple[str, ...] = setting(
        PHRASES, "Phrases to search for in the comments of closed issues."
    )
    title_words: tuple[str, ...] = setting(
        TITLE_WORDS, "Words to search for in the titles of issues."
    )
    body_phrases: tuple[str, ...] = setting(
        BODY_PHRASES, "Phrases to search for in the bodies of issues."
    )
    max_phrase_share: float = setting(
        0.3,
        "Skip a phrase that matches more than this share of the issues: it is from a bot or a template.",
        gt=0,
        le=1,
    )
    label_query: str = setting(
        "dup", "Also fetch issues with a label whose name contains this text."
    )

    thread_batch: int = setting(
        49,
        "Number of threads in one query; 49 of 3 connections cost one point (connections / 100, rounded).",
        ge=1,
        le=100,
    )
    issue_batch: int = setting(100, "Number of issues in one query.", ge=1, le=100)
    search_batch: int = setting(8, "Number of searches in one query.", ge=1, le=20)
    comments_inline: int = setting(
        30,
        "Number of comments to fetch together with their issue.",
        ge=1,
        le=100,
    )
    events_inline: int = setting(
        20,
        "Number of events to fetch together with their issue.",
        ge=1,
        le=100,
    )
    labels_inline: int = setting(
        10,
        "Number of labels to fetch together with their issue.",
        ge=1,
        le=100,
    )
    search_limit: int = setting(1000, "Maximum number of results of one search.", ge=1)

    timeout_s: float = setting(
        30.0,
        "Seconds to wait for a whole response; GitHub itself times out after 10.",
        gt=0,
    )
    attempts: int = setting(
        8,
        "Number of consecutive failures before a repository fails in this run.",
        ge=1,
    )
    first_attempts: int = setting(
        4,
        "Number of failures after which a server that never responded counts as unreachable.",
        ge=1,
    )
    backoff_s: float = setting(
        1.0,
        "Seconds to wait after the first failure; doubles, with jitter.",
        ge=0,
    )
    secondary_wait_s: float = setting(
        60.0,
        "Seconds to wait at a rate limit if the server requests no time; doubles.",
        ge=0,
    )
    max_wait_s: float = setting(
        3900.0,
        "Maximum number of seconds to wait; a longer wait ends the run, which can be resumed.",
        ge=0,
    )

    @field_validator("api_url")
    @classmethod
    def _normalized_root(cls, url: str) -> str:
        return read_root(url).url

    @property
    def graphql_address(self) -> Address:
        """The parent of `/graphql`; on GitHub Enterprise it is `/api`, not `/api/v3`."""
        root = read_root(self.api_url)
        is_enterprise = root.path.endswith("/api/v3")
        return (
            replace(root, path=root.path.removesuffix("/v3")) if is_enterprise else root
        )

    @property
    def graphql_url(self) -> str:
        """The URL for queries."""
        return f"{self.graphql_address.url}/graphql"
