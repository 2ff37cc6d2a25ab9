"""What the emulator holds, as the REST API writes it."""

from __future__ import annotations

import zlib
from typing import Any

from gis_builder._emulator.nodes import issue_node_id, repository_node_id
from gis_builder._emulator.tracker import Account, Comment, Event, Issue, Repository

View = dict[str, Any]

_GHOST = Account("ghost", "User")  # REST's stand-in for a deleted account; GraphQL says null


class Views:
    """Renders objects whose links lead back to this server.

    Args:
        base: The server's root address, without a slash at its end.
    """

    def __init__(self, base: str) -> None:
        self._base = base

    def repository(self, repository: Repository) -> View:
        """A repository."""
        owner, _, name = repository.name.partition("/")
        tracker = repository.tracker
        issues = tracker.issues.values()
        return {
            "id": repository.id,
            "node_id": repository_node_id(repository),
            "name": name,
            "full_name": repository.name,
            "private": False,
            "owner": self.account(Account(owner, "Organization")),
            "description": tracker.info.get("description"),
            "url": self._repo_url(repository),
            "html_url": f"https://github.com/{repository.name}",
            "fork": tracker.flag("fork"),
            "archived": tracker.flag("archived"),
            "disabled": tracker.flag("disabled"),
            "has_issues": repository.has_issues,
            "open_issues_count": sum(issue.state == "open" for issue in issues),
            "created_at": tracker.info.get("created_at") or min((i.created_at for i in issues), default=None),
            "updated_at": max((issue.updated_at for issue in issues), default=None),
            "default_branch": "main",
        }

    def issue(self, repository: Repository, issue: Issue) -> View:
        """An issue or pull request."""
        url = f"{self._repo_url(repository)}/issues/{issue.number}"
        html_url = repository.url(issue.number, is_pull=issue.is_pull)
        view: View = {
            "url": url,
            "repository_url": self._repo_url(repository),
            "labels_url": f"{url}/labels{{/name}}",
            "comments_url": f"{url}/comments",
            "events_url": f"{url}/events",
            "timeline_url": f"{url}/timeline",
            "html_url": html_url,
            "id": repository.unique_id(issue.id),
            "node_id": issue_node_id(repository, issue),
            "number": issue.number,
            "title": issue.title,
            "user": self.account(issue.author or _GHOST),
            "labels": self.labels(repository, issue),
            "state": issue.state,
            "state_reason": issue.state_reason,
            "locked": False,
            "assignee": None,
            "assignees": [],
            "milestone": None,
            "comments": len(issue.comments),
            "created_at": issue.created_at,
            "updated_at": issue.updated_at,
            "closed_at": issue.closed_at,
            "closed_by": self.account(issue.closed_by),
            "author_association": issue.association,
            "body": issue.body,
            "reactions": _reactions(url),
        }
        if issue.is_pull:
            view["pull_request"] = {
                "url": f"{self._repo_url(repository)}/pulls/{issue.number}",
                "html_url": html_url,
                "merged_at": issue.closed_at if issue.is_merged else None,
            }
        return view

    def comment(self, repository: Repository, issue: Issue, comment: Comment) -> View:
        """A comment."""
        unique_id = repository.unique_id(comment.id)
        page = repository.url(issue.number, is_pull=issue.is_pull)
        url = f"{self._repo_url(repository)}/issues/comments/{unique_id}"
        return {
            "url": url,
            "html_url": f"{page}#issuecomment-{unique_id}",
            "issue_url": f"{self._repo_url(repository)}/issues/{issue.number}",
            "id": unique_id,
            "node_id": f"IC_{repository.id}_{issue.number}_{unique_id}",
            "user": self.account(comment.author or _GHOST),
            "created_at": comment.created_at,
            "updated_at": comment.updated_at,
            "author_association": comment.association,
            "body": comment.body,
            "reactions": _reactions(url),
        }

    def event(self, repository: Repository, issue: Issue, event: Event) -> View:
        """An event. As on GitHub, a mark as duplicate does not name the canonical issue here."""
        place = [*issue.events, *issue.labelled].index(event)
        unique_id = repository.id % 100_000 * 1_000_000_000 + issue.number * 1000 + place
        view: View = {
            "id": unique_id,
            "node_id": f"EV_{repository.id}_{issue.number}_{place}",
            "url": f"{self._repo_url(repository)}/issues/events/{unique_id}",
            "actor": self.account(event.actor),
            "event": event.kind,
            "commit_id": None,
            "commit_url": None,
            "created_at": event.created_at,
        }
        if event.kind == "closed":
            view["state_reason"] = event.state_reason
        if event.label is not None:
            view["label"] = {"name": event.label, "color": "ededed"}
        return view

    def account(self, account: Account | None) -> View | None:
        """An account."""
        if account is None:
            return None
        return {
            "login": account.login,
            "id": zlib.crc32(account.login.lower().encode()),
            "node_id": f"U_{account.login}",
            "type": account.kind,
            "url": f"{self._base}/users/{account.login}",
            "html_url": f"https://github.com/{account.login}",
            "site_admin": False,
        }

    def labels(self, repository: Repository, issue: Issue) -> list[View]:
        """The labels of an issue."""
        return [self._label(repository, label) for label in issue.labels]

    def _label(self, repository: Repository, name: str) -> View:
        return {
            "id": zlib.crc32(name.encode()),
            "node_id": f"LA_{zlib.crc32(name.encode()):08x}",
            "url": f"{self._repo_url(repository)}/labels/{name}",
            "name": name,
            "color": "ededed",
            "default": False,
            "description": None,
        }

    def _repo_url(self, repository: Repository) -> str:
        return f"{self._base}/repos/{repository.name}"


def _reactions(url: str) -> View:
    """No reactions: a dump's are not served, but clients rely on the key."""
    kinds = ("+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes")
    return {"url": f"{url}/reactions", "total_count": 0, **dict.fromkeys(kinds, 0)}
