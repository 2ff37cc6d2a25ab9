"""Take credentials and e-mail addresses out of a text. Public issues do contain them.

The rules know the shapes that providers give their keys, and one general shape: a name that promises a secret
with a long random value. Each is linear in the length of the text. A match becomes `[secret]` or `[email]`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

SECRET = "[secret]"  # noqa: S105 - the word that stands where a secret stood
EMAIL = "[email]"

_START = r"(?<![A-Za-z0-9_])"
_RANDOM_BITS = 3.2  # bits a character; prose and identifiers of the same length mostly stay under it
_PLACEHOLDER = re.compile(r"x{6,}|\*{4,}|\.{3,}|example|placeholder|your[-_]", re.IGNORECASE)
_NOT_A_WORD = re.compile(r"[0-9]|[a-z][A-Z]")


@dataclass(frozen=True, slots=True)
class _Rule:
    kind: str
    gates: tuple[str, ...]  # the rule runs only where one of these stands in the text (lower case)
    pattern: re.Pattern[str]
    put: str | Callable[[re.Match[str]], str] = SECRET


def _looks_random(value: str) -> bool:
    """Digits and letters mixed with high entropy, and nothing that says it stands for a value."""
    if not (any(c.isdigit() for c in value) and any(c.isalpha() for c in value)) or _PLACEHOLDER.search(
        value
    ):
        return False
    counts = Counter(value).values()
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts) >= _RANDOM_BITS


def _if_random(match: re.Match[str]) -> str:
    return match["lead"] + SECRET if _looks_random(match["value"]) else match[0]


_KEYWORD = (
    r"(?:password|passwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|auth[_-]?key|account[_-]?key"
    r"|credentials?)"
)
_RULES = (
    _Rule(
        "secret_private_key",
        ("private key",),
        re.compile(
            r"-----BEGIN[^-\n]{0,40}PRIVATE KEY[^-\n]{0,10}-----"
            r"(?:(?:[^-]|-(?!----))*-----END[^-\n]{0,60}-----|(?:\s*[A-Za-z0-9+/=]{16,})*)"
        ),
    ),
    _Rule(
        "secret_github",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        re.compile(r"(?:gh[pousr]_[A-Za-z0-9]{20,255}|github_pat_[A-Za-z0-9_]{20,255})"),
    ),
    _Rule("secret_aws", ("akia", "asia"), re.compile(_START + r"A(?:KI|SI)A[A-Z0-9]{16}(?![A-Za-z0-9])")),
    _Rule(
        "secret_slack",
        ("xox", "xapp-", "hooks.slack.com"),
        re.compile(
            _START + r"(?:xox[a-z]-[A-Za-z0-9-]{10,255}|xapp-[A-Za-z0-9-]{10,255})"
            r"|(?<=hooks\.slack\.com/services/)[\w/-]{10,120}"
        ),
    ),
    _Rule(
        "secret_google",
        ("aiza", "ya29.", "gocspx-"),
        re.compile(_START + r"(?:AIza[\w-]{35}|ya29\.[\w-]{20,400}|GOCSPX-[\w-]{20,60})"),
    ),
    _Rule(
        "secret_llm",
        ("sk-", "hf_"),
        re.compile(r"(?<![A-Za-z0-9_-])(?P<lead>)(?P<value>sk-[A-Za-z0-9_-]{20,255}|hf_[A-Za-z0-9]{30,60})"),
        _if_random,
    ),
    _Rule(
        "secret_service",
        ("glpat-", "npm_", "pypi-", "sk_live_", "rk_live_", "sk_test_", "sg.", "dop_v1_", "shpat_"),
        re.compile(
            _START + r"(?:glpat-[\w-]{20,64}|npm_[A-Za-z0-9]{36}|pypi-[\w-]{50,255}"
            r"|[sr]k_(?:live|test)_[A-Za-z0-9]{16,255}"
            r"|SG\.[\w-]{16,64}\.[\w-]{16,64}|dop_v1_[0-9a-f]{64}|shpat_[0-9a-fA-F]{32})"
        ),
    ),
    _Rule(
        "secret_jwt",
        ("eyj",),
        re.compile(r"(?<![\w-])eyJ[\w-]{8,4000}\.eyJ[\w-]{8,4000}(?:\.[\w-]{0,4000})?"),
    ),
    _Rule(
        "secret_url_password",
        ("://",),
        re.compile(
            r"(?<=://)(?P<user>[^\s/@:\"'<>\[\]]{0,100}):(?!\[secret\])[^\s/@\"'<>]{1,200}(?=@[A-Za-z0-9\[])"
        ),
        lambda match: f"{match['user']}:{SECRET}",
    ),
    _Rule(
        "secret_authorization",
        ("authorization", "bearer"),
        re.compile(
            r"(?P<lead>\bauthorization[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?"
            r"(?:(?:bearer|basic|token|digest|negotiate)[ \t]{1,4})?"
            r"|\bbearer[ \t]{1,4})(?P<value>(?!(?:bearer|basic|token|digest)\b)[A-Za-z0-9._~+/=-]{12,4000})",
            re.IGNORECASE,
        ),
        lambda match: match["lead"] + SECRET if _NOT_A_WORD.search(match["value"]) else match[0],
    ),
    _Rule(
        "secret_assignment",
        ("password", "passwd", "secret", "token", "key", "credential"),
        re.compile(
            rf"(?P<lead>{_KEYWORD}[\w-]{{0,30}}[\"']?[ \t]{{0,4}}(?:=>|[:=])[ \t]{{0,4}}[\"']?)"
            r"(?P<value>[A-Za-z0-9+/_~-]{20,512}={0,2})(?![A-Za-z0-9+/_~.(:-])",
            re.IGNORECASE,
        ),
        _if_random,
    ),
    _Rule(
        "email",
        ("@",),
        re.compile(
            r"(?<![A-Za-z0-9._%+/@-])(?!git@)[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@"
            r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,6}"
            r"(?:com|org|net|edu|gov|mil|info|io|dev|app|name|biz|xyz|tech|cloud|email|local|[a-z]{2})"
            r"(?![A-Za-z0-9_(@-]|\.[A-Za-z]|:[0-9])",
            re.IGNORECASE,
        ),
        EMAIL,
    ),
)


def scrub_secrets(text: str) -> tuple[str, dict[str, int]]:
    """The text with credentials as `[secret]` and e-mail addresses as `[email]`, and counts by rule."""
    counts: dict[str, int] = {}
    lower = text.lower()
    for rule in _RULES:
        if any(gate in lower for gate in rule.gates):
            text, count = _apply(rule, text)
            if count:
                counts[rule.kind] = count
    return text, counts


def _apply(rule: _Rule, text: str) -> tuple[str, int]:
    count = 0

    def replace(match: re.Match[str]) -> str:
        nonlocal count
        put = rule.put if isinstance(rule.put, str) else rule.put(match)
        count += put != match[0]
        return put

    return rule.pattern.sub(replace, text), count
