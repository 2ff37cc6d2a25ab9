from __future__ import annotations

import importlib.util
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from gis_builder.pairing.dataset import gis_card
from gis_builder.pairing.secrets import KINDS, scrub_secrets
from tests.support.linear import assert_linear, repeated

# Put together here, so that no scanner takes this file for a leak.
BODY = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.mark.parametrize(
    ("text", "kind", "left"),
    [
        (f"token ghp_{BODY}", "secret_github", "token [secret]"),
        (f"gho_{BODY}.", "secret_github", "[secret]."),
        (f"github_pat_11ABC_{BODY}", "secret_github", "[secret]"),
        ("AKIA" + "IOSFODNN7ABCDEFG", "secret_aws", "[secret]"),
        ("xoxb-" + "123456789012-abcdefghij", "secret_chat", "[secret]"),
        ("https://hooks.slack.com/services/" + "T00000000/B00000000/XXXX", "secret_chat", None),
        ("AIza" + BODY[:35], "secret_google", "[secret]"),
        (f"sk-{BODY}", "secret_llm", "[secret]"),
        (f"sk-ant-api03-{BODY}", "secret_llm", "[secret]"),
        (f"glpat-{BODY}", "secret_gitlab", "[secret]"),
        (f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{BODY}", "secret_jwt", "[secret]"),
        (
            "postgres://user:hunter2@db.example/x",
            "secret_url_password",
            "postgres://user:[secret]@db.example/x",
        ),
        (
            "-H 'Authorization: Bearer abc123def456ghi'",
            "secret_authorization",
            "-H 'Authorization: Bearer [secret]'",
        ),
        (
            "authorization: Basic dXNlcjpwYXNzd29yZA==",
            "secret_authorization",
            "authorization: Basic [secret]",
        ),
        (f'API_KEY="{BODY}"', "secret_assignment", 'API_KEY="[secret]"'),
        (f"client_secret: {BODY}", "secret_assignment", "client_secret: [secret]"),
        (f"aws_secret_access_key = {BODY}+/ab", "secret_aws", "aws_secret_access_key = [secret]"),
        ("hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH", "secret_llm", "[secret]"),
        (
            "https://discord.com/api/webhooks/" + "123456789012345678/" + BODY * 2,
            "secret_chat",
            "https://discord.com/api/webhooks/[secret]",
        ),
        (
            "https://api.telegram.org/bot" + "123456789:AA" + BODY[:33] + "/getMe",
            "secret_chat",
            "https://api.telegram.org/bot[secret]/getMe",
        ),
        ("DB_PASSWORD=correcthorse", "secret_password", "DB_PASSWORD=[secret]"),
        ("export SMTP_PASS=battery", "secret_password", "export SMTP_PASS=[secret]"),
        ("  password: letmein", "secret_password", "  password: [secret]"),
        ("I ran it with password: hunter2 and", "secret_password", "I ran it with password: [secret] and"),
        (
            '{"user": "a", "password": "swordfish"}',
            "secret_password",
            '{"user": "a", "password": "[secret]"}',
        ),
        (r"log: {\"password\":\"swordfish\"}", "secret_password", r"log: {\"password\":\"[secret]\"}"),
        ("Server=x;User=sa;Password=swordfish;", "secret_password", "Server=x;User=sa;Password=[secret];"),
        ("curl -u admin:swordfish https://x", "secret_password", "curl -u admin:[secret] https://x"),
        ("<dbPassword>swordfish</dbPassword>", "secret_password", "<dbPassword>[secret]</dbPassword>"),
        ("mysqldump -u root -pswordfish shop", "secret_password", "mysqldump -u root -p[secret] shop"),
        (
            "ALTER USER a IDENTIFIED BY 'swordfish';",
            "secret_password",
            "ALTER USER a IDENTIFIED BY '[secret]';",
        ),
        ('smtp.login("ann", "swordfish")', "secret_password", 'smtp.login("ann", "[secret]")'),
        ("the password was changed to hunter2 today", "secret_password", None),
        ("ann:$2y$10$" + "./" * 26 + "a", "secret_password", "ann:[secret]"),
        (f"define('AUTH_KEY', '{BODY}');", "secret_assignment", "define('AUTH_KEY', '[secret]');"),
        (f"- name: API_KEY\n  value: {BODY}", "secret_assignment", "- name: API_KEY\n  value: [secret]"),
        (f'{{"name": "X-Auth-Token", "value": "{BODY}"}}', "secret_authorization", None),
        (f"GET /v1/items?appid={BODY}", "secret_assignment", "GET /v1/items?appid=[secret]"),
        (f'{{"auths": {{"x": {{"auth": "{BODY}=="}}}}}}', "secret_registry", None),
        (
            "tls.key: LS0tLS1CRUdJTiBS" + "U0EgUFJJVkFURS" + BODY * 2,
            "secret_private_key",
            "tls.key: [secret]",
        ),
        (
            f".x.io\tTRUE\t/\tTRUE\t1767225600\tsid\t{BODY}",
            "secret_cookie",
            ".x.io\tTRUE\t/\tTRUE\t1767225600\tsid\t[secret]",
        ),
        ("API_TOKEN=abc123de", "secret_assignment", "API_TOKEN=[secret]"),
        (f"Cookie: theme=dark; sessionid={BODY}", "secret_cookie", "Cookie: [secret]"),
        (f"PHPSESSID={BODY[:26]}", "secret_cookie", "PHPSESSID=[secret]"),
        (f"X-Api-Key: {BODY}", "secret_authorization", "X-Api-Key: [secret]"),
        ("mail jane.doe+x@mail.example.org now", "email", "mail [email] now"),
        ("mailto:a@b.io", "email", "mailto:[email]"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE" + BODY + "\n-----END RSA PRIVATE KEY-----\nthen",
            "secret_private_key",
            "[secret]\nthen",
        ),
        ("-----BEGIN PRIVATE KEY-----\n" + BODY + "\nand words", "secret_private_key", "[secret]\nand words"),
    ],
)
def test_secrets_go(text: str, kind: str, left: str | None) -> None:
    scrubbed, counts = scrub_secrets(text)
    assert counts == {kind: 1}
    assert left is None or scrubbed == left
    assert scrub_secrets(scrubbed) == (scrubbed, {})


@pytest.mark.parametrize(
    "text",
    [
        "git@github.com:owner/name.git",
        "[closure@main.rs:1:46]",
        "npm install pkg@1.2.3",
        "let token = parser.next_token_after_whitespace();",
        "token: syntax::parse::token::Token",
        "password: ********",
        "api_key = your-api-key-goes-here-0000",
        "sk-estimator-doc-link-container-id",
        "a commit 0123456789abcdef0123456789abcdef01234567",
        "@property def x",
        "Authorization: required for every request",
        "http://localhost:8080/path@2",
        "the bearer acknowledges",
        "password: String,",
        "password = get_password(user)",
        "login(user=user, password=settings.PASSWORD)",
        "DB_PASSWORD=${DB_PASSWORD}",
        "DB_PASSWORD=<your password>",
        "PASS: minisketch/test",
        "test run-pass: enum-dispatch.rs ... ok",
        "PWD=/home/user/src",
        "the password is required",
        "Cookie: session=...",
        "Cookie: lang=en; consent=1",
        "configure --disable-rpass --python=/usr/bin/python2",
        "https://play.example/?code=fn%20main%28%29%20%7B%0A%20let%20x1",
        "password_hash: argon2id",
        '{"password": "Passwort"}',
        "postgres://app:${DB_PASSWORD}@db/app",
        f"cache-key: linux-{'0123456789abcdef' * 2}",
        "test password::verifies_hash ... ok",
        "docker run -u 1000:1000 image",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert scrub_secrets(text) == (text, {})


def test_the_card_names_every_kind_that_is_replaced() -> None:
    card = gis_card({"splits": {}, "repository_count": 0, "relations": {}}, {})
    assert [what for what in KINDS.values() if what not in card] == []


def test_a_value_that_is_turned_down_hides_none_behind_it() -> None:
    scrubbed, _ = scrub_secrets('password: "password"\npassword: "hunter2"')
    assert scrubbed == 'password: "password"\npassword: "[secret]"'


@pytest.mark.parametrize(
    "unit",
    ["password", "key-", "eyJ", "-----BEGIN PRIVATE KEY-----", "a@b.", "Cookie: a=b;"],
)
def test_a_hostile_text_takes_linear_time(unit: str) -> None:
    """Units that many patterns begin with; `benchmarks/hostile_texts.py` tries thousands."""
    assert_linear(scrub_secrets, repeated(unit))


def test_planted_credentials_go_and_look_alikes_stay() -> None:
    path = Path(__file__).parents[2] / "benchmarks" / "planted_secrets.py"
    spec = importlib.util.spec_from_file_location("planted_secrets", path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules["planted_secrets"] = planted = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(planted)
    gone: dict[str, list[bool]] = defaultdict(list)
    for case in planted.plant(seed=1, per_kind=60):
        gone[case.kind].append(case.secret not in scrub_secrets(case.text)[0])
    shares = {kind: sum(found) / len(found) for kind, found in gone.items()}
    assert shares.pop("none") <= 0.05
    assert shares.keys() == KINDS.keys()
    assert {
        kind: share for kind, share in shares.items() if share < (0.85 if kind == "secret_password" else 0.9)
    } == {}
