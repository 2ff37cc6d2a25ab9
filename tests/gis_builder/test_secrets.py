from __future__ import annotations

import pytest

from gis_builder.pairs.secrets import scrub_secrets

# Put together here, so that no scanner takes this file for a leak.
BODY = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.mark.parametrize(
    ("text", "kind", "left"),
    [
        (f"token ghp_{BODY}", "secret_github", "token [secret]"),
        (f"gho_{BODY}.", "secret_github", "[secret]."),
        (f"github_pat_11ABC_{BODY}", "secret_github", "[secret]"),
        ("AKIA" + "IOSFODNN7ABCDEFG", "secret_aws", "[secret]"),
        ("xoxb-" + "123456789012-abcdefghij", "secret_slack", "[secret]"),
        ("https://hooks.slack.com/services/" + "T00000000/B00000000/XXXX", "secret_slack", None),
        ("AIza" + BODY[:35], "secret_google", "[secret]"),
        (f"sk-{BODY}", "secret_llm", "[secret]"),
        (f"sk-ant-api03-{BODY}", "secret_llm", "[secret]"),
        (f"glpat-{BODY}", "secret_service", "[secret]"),
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
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert scrub_secrets(text) == (text, {})
