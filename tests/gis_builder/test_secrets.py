from __future__ import annotations

import importlib.util
import re
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from gis_builder.pairing.dataset import gis_card
from gis_builder.pairing.secrets import KINDS, scrub_secrets
from tests.support.linear import assert_linear, repeated

BODY = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


# Secrets are between « and ». They are put together here, so that no scanner takes this file for a leak.
SECRETS = {
    "secret_github": [f"token «ghp_{BODY}»", f"«gho_{BODY}».", f"«github_pat_11ABC_{BODY}»"],
    "secret_aws": ["«AKIA" + "IOSFODNN7ABCDEFG»", f"aws_secret_access_key = «{BODY}+/ab»"],
    "secret_chat": [
        "«xoxb-" + "123456789012-abcdefghij»",
        "https://hooks.slack.com/services/«" + "T00000000/B00000000/XXXX»",
        "https://discord.com/api/webhooks/«" + "123456789012345678/" + f"{BODY * 2}»",
        "https://api.telegram.org/bot«" + "123456789:AA" + f"{BODY[:33]}»/getMe",
    ],
    "secret_google": [f"«AIza{BODY[:35]}»"],
    "secret_llm": [f"«sk-{BODY}»", f"«sk-ant-api03-{BODY}»", "«hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH»"],
    "secret_gitlab": [f"«glpat-{BODY}»"],
    "secret_jwt": [f"«eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{BODY}»"],
    "secret_url_password": ["postgres://user:«hunter2»@db.example/x"],
    "secret_authorization": [
        "-H 'Authorization: Bearer «abc123def456ghi»'",
        "authorization: Basic «dXNlcjpwYXNzd29yZA==»",
        f'{{"name": "X-Auth-Token", "value": "«{BODY}»"}}',
        f"X-Api-Key: «{BODY}»",
    ],
    "secret_assignment": [
        f'API_KEY="«{BODY}»"',
        f"client_secret: «{BODY}»",
        f"define('AUTH_KEY', '«{BODY}»');",
        f"- name: API_KEY\n  value: «{BODY}»",
        f"GET /v1/items?appid=«{BODY}»",
        "API_TOKEN=«abc123de»",
    ],
    "secret_password": [
        "DB_PASSWORD=«correcthorse»",
        "export SMTP_PASS=«battery»",
        "  password: «letmein»",
        "I ran it with password: «hunter2» and",
        '{"user": "a", "password": "«swordfish»"}',
        r"log: {\"password\":\"«swordfish»\"}",
        "Server=x;User=sa;Password=«swordfish»;",
        "curl -u admin:«swordfish» https://x",
        "<dbPassword>«swordfish»</dbPassword>",
        "mysqldump -u root -p«swordfish» shop",
        "ALTER USER a IDENTIFIED BY '«swordfish»';",
        'smtp.login("ann", "«swordfish»")',
        "the password was changed to «hunter2» today",
        "ann:«$2y$10$" + "./" * 26 + "a»",
    ],
    "secret_registry": [f'{{"auths": {{"x": {{"auth": "«{BODY}==»"}}}}}}'],
    "secret_private_key": [
        "tls.key: «LS0tLS1CRUdJTiBS" + "U0EgUFJJVkFURS" + f"{BODY * 2}»",
        f"«-----BEGIN RSA PRIVATE KEY-----\nMIIE{BODY}\n-----END RSA PRIVATE KEY-----»\nthen",
        f"«-----BEGIN PRIVATE KEY-----\n{BODY}»\nand words",
    ],
    "secret_cookie": [
        f".x.io\tTRUE\t/\tTRUE\t1767225600\tsid\t«{BODY}»",
        f"Cookie: «theme=dark; sessionid={BODY}»",
        f"PHPSESSID=«{BODY[:26]}»",
    ],
    "email": ["mail «jane.doe+x@mail.example.org» now", "mailto:«a@b.io»"],
}


@pytest.mark.parametrize(
    ("kind", "marked"), [(kind, text) for kind, rows in SECRETS.items() for text in rows]
)
def test_secrets_are_replaced(kind: str, marked: str) -> None:
    scrubbed, counts = scrub_secrets(marked.translate({ord("«"): None, ord("»"): None}))
    assert counts == {kind: 1}
    assert scrubbed == re.sub("«.*»", "[email]" if kind == "email" else "[secret]", marked, flags=re.DOTALL)
    assert scrub_secrets(scrubbed) == (scrubbed, {})


@pytest.mark.parametrize(
    "text",
    [
        *("git@github.com:owner/name.git", "[closure@main.rs:1:46]", "npm install pkg@1.2.3"),
        *("let token = parser.next_token_after_whitespace();", "token: syntax::parse::token::Token"),
        *("password: ********", "api_key = your-api-key-goes-here-0000"),
        *("sk-estimator-doc-link-container-id", "a commit 0123456789abcdef0123456789abcdef01234567"),
        *("@property def x", "Authorization: required for every request", "http://localhost:8080/path@2"),
        *("the bearer acknowledges", "password: String,", "password = get_password(user)"),
        *("login(user=user, password=settings.PASSWORD)", "DB_PASSWORD=${DB_PASSWORD}"),
        *("DB_PASSWORD=<your password>", "PASS: minisketch/test", "test run-pass: enum-dispatch.rs ... ok"),
        *("PWD=/home/user/src", "the password is required", "Cookie: session=..."),
        *("Cookie: lang=en; consent=1", "configure --disable-rpass --python=/usr/bin/python2"),
        *("https://play.example/?code=fn%20main%28%29%20%7B%0A%20let%20x1", "password_hash: argon2id"),
        *('{"password": "Passwort"}', "postgres://app:${DB_PASSWORD}@db/app"),
        *(f"cache-key: linux-{'0123456789abcdef' * 2}", "test password::verifies_hash ... ok"),
        "docker run -u 1000:1000 image",
    ],
)
def test_other_texts_stay(text: str) -> None:
    assert scrub_secrets(text) == (text, {})


def test_the_card_lists_every_kind() -> None:
    card = gis_card({"splits": {}, "repository_count": 0, "relations": {}}, {})
    assert [what for what in KINDS.values() if what not in card] == []


def test_a_rejected_value_does_not_hide_the_next_one() -> None:
    scrubbed, _ = scrub_secrets('password: "password"\npassword: "hunter2"')
    assert scrubbed == 'password: "password"\npassword: "[secret]"'


@pytest.mark.parametrize(
    "unit",
    ["password", "key-", "eyJ", "-----BEGIN PRIVATE KEY-----", "a@b.", "Cookie: a=b;"],
)
def test_a_hostile_text_takes_linear_time(unit: str) -> None:
    """Beginnings of many patterns; `benchmarks/hostile_texts.py` tries thousands."""
    assert_linear(scrub_secrets, repeated(unit))


def test_planted_credentials_are_replaced_and_similar_texts_stay() -> None:
    path = Path(__file__).parents[2] / "benchmarks" / "planted_secrets.py"
    spec = importlib.util.spec_from_file_location("planted_secrets", path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules["planted_secrets"] = planted = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(planted)
    replaced: dict[str, list[bool]] = defaultdict(list)
    for case in planted.plant(seed=1, per_kind=60):
        replaced[case.kind].append(case.secret not in scrub_secrets(case.text)[0])
    shares = {kind: sum(results) / len(results) for kind, results in replaced.items()}
    assert shares.pop("none") <= 0.05
    assert shares.keys() == KINDS.keys()
    least = dict.fromkeys(KINDS, 0.9) | {"secret_password": 0.85}
    assert {kind: share for kind, share in shares.items() if share < least[kind]} == {}
