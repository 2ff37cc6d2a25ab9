import pytest

from pairkit.app.errors import (
    AuthError,
    BadReply,
    ConfigError,
    DataError,
    LeakError,
    PairkitError,
    RateLimited,
    RemoteError,
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (PairkitError("x"), 1),
        (ConfigError("x"), 2),
        (DataError("x"), 3),
        (LeakError("x"), 3),
        (RemoteError("x"), 4),
        (RateLimited("x", 3.0), 4),
        (AuthError("x"), 4),
        (BadReply("x"), 4),
    ],
)
def test_exit_codes(error: PairkitError, code: int) -> None:
    assert error.exit_code == code


def test_data_error_names_file_and_row() -> None:
    assert str(DataError("empty text", path="a.tsv", row=3)) == "a.tsv:3: empty text"
    assert str(DataError("empty file", path="a.tsv")) == "a.tsv: empty file"
    assert str(DataError("empty")) == "empty"


def test_rate_limited_knows_how_long() -> None:
    assert RateLimited("slow down", 61.5).retry_after_s == 61.5
