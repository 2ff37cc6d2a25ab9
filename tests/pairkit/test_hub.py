from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pairkit.app.errors import AuthError, ConfigError, DataError, RemoteError
from pairkit.dataset import hub as hub_of_ours
from pairkit.dataset.hub import listing

huggingface_hub = pytest.importorskip("huggingface_hub")
constants = pytest.importorskip("huggingface_hub.constants")
FILES = {"README.md": "# A model\n", "run.json": "{}\n", "1_Pooling/config.json": '{"a": 1}\n'}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / "m" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "m" / name).write_text(text)
    (tmp_path / "m/.hidden").write_text("not sent")
    return tmp_path / "m"


def push(
    folder: Path, repo: str, url: str, *, private: bool = False, revision: str | None = None
) -> str | None:
    options: dict[str, Any] = {"public": not private, "revision": revision, "endpoint": url}
    files = listing(folder, ["README.md"], "a model")
    return hub_of_ours.push(folder, repo, files, kind="model", command="a test", **options).url


def test_every_file_arrives_in_one_commit(hub: Any, model: Path) -> None:
    assert push(model, "me/m", hub.url, private=True) == f"{hub.url}/me/m/commit/abc"
    assert hub.files == FILES
    assert hub.created == [{"name": "m", "organization": "me", "visibility": "private", "type": "model"}]
    assert [path for path, _ in hub.asked if "/commit/" in path] == ["/api/models/me/m/commit/main"]
    assert {token for _, token in hub.asked} == {"Bearer hf_secret"}


def test_what_is_private_goes_to_no_public_repository(hub: Any, model: Path) -> None:
    hub.private = False
    with pytest.raises(ConfigError, match="me/m exists and everybody can see it"):
        push(model, "me/m", hub.url, private=True)
    assert hub.files == {}
    push(model, "me/m", hub.url)
    assert hub.files == FILES


def test_a_branch(hub: Any, model: Path) -> None:
    push(model, "me/m", hub.url, revision="v2")
    assert "/api/models/me/m/branch/v2" in [path for path, _ in hub.asked]
    assert "/api/models/me/m/commit/v2" in [path for path, _ in hub.asked]
    assert "visibility" not in hub.created[0]


@pytest.mark.parametrize(
    ("status", "error", "named"),
    [
        (401, AuthError, "refused the token"),
        (403, AuthError, "right to write"),
        (400, RemoteError, "Hub answered"),
    ],
)
def test_refusals(hub: Any, model: Path, status: int, error: type[Exception], named: str) -> None:
    hub.status = status
    with pytest.raises(error, match=named) as told:
        push(model, "me/m", hub.url)
    assert hub.files == {}
    assert "hf_secret" not in str(told.value)


@pytest.mark.parametrize("token", [None, "", " "])
def test_no_token(hub: Any, model: Path, monkeypatch: pytest.MonkeyPatch, token: str | None) -> None:
    if token is None:
        monkeypatch.delenv("HF_TOKEN")
    else:
        monkeypatch.setenv("HF_TOKEN", token)
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: "hf_of_another_day")
    with pytest.raises(AuthError, match="HF_TOKEN"):
        push(model, "me/m", hub.url)
    assert hub.asked == []


@pytest.mark.parametrize("address", ["http://hub.example", "http://me:secret@127.0.0.1", "file:///etc"])
def test_a_token_goes_over_no_open_line(model: Path, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    with pytest.raises(ConfigError) as told:
        push(model, "me/m", address)
    assert "secret@" not in str(told.value)


def test_nobody_there(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    with pytest.raises(RemoteError, match="can't be reached"):
        push(model, "me/m", "http://127.0.0.1:9")


def test_no_name_of_a_repository(hub: Any, model: Path) -> None:
    with pytest.raises(ConfigError, match="owner/name"):
        push(model, "a/b/c", hub.url)


def test_a_link_sends_nothing_from_elsewhere(model: Path, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("mine")
    (model / "key").symlink_to(tmp_path / "key")
    with pytest.raises(DataError, match="m/key: is a link"):
        listing(model, [], "a model")
