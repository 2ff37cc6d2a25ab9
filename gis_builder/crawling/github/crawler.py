"""The crawl's API: one worker for each token; a failed repository does not stop the others."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import asdict, replace
from functools import partial
from typing import Self

from msgspec.json import Decoder

from gis_builder.crawling.github import check, search, sweep
from gis_builder.crawling.github.batches import BatchSize, Crawl, ask_sized
from gis_builder.crawling.github.check import may_be_repository
from gis_builder.crawling.github.client import Client, CrawlStopped, RequestRefused
from gis_builder.crawling.github.fetch import fetch
from gis_builder.crawling.github.negative_sample import fetch_negative_sample
from gis_builder.crawling.github.nodes import TypeNode
from gis_builder.crawling.github.queries import INTROSPECTION, Queries, Server
from gis_builder.crawling.github.tokens import Token
from gis_builder.progress import Began, CrawlListener, Finished, ignore
from gis_builder.settings.crawl import CrawlSettings
from gis_builder.store import Absence, Page, RepoOutcome, RepoRow, Store, Usage
from gis_builder.store.records import IssueRef, Kind
from pairkit.app.errors import AuthError, ConfigError, RateLimited, RemoteError

_SERVER = Decoder(Server)


class Worker:
    """One token's client, and what a job works with."""

    def __init__(
        self,
        settings: CrawlSettings,
        token: Token,
        store: Store,
        stop: threading.Event,
        listener: CrawlListener,
    ) -> None:
        self._settings, self._store, self._listener = settings, store, listener
        self._client = Client(settings, token, stop, listener)
        self._made: Crawl | None = None

    def take_usage(self) -> Usage:
        """The cost that is not stored yet."""
        return self._client.take_usage()

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def crawl(self) -> Crawl:
        """The tools, made when first used: which fields the server has must be known for the queries."""
        if self._made is None:
            queries = Queries(self._settings, self._server())
            self._made = Crawl(self._settings, self._client, self._store, self._listener, queries)
        return self._made

    def _server(self) -> Server:
        """What the server has, asked once for a store, so that all of a crawl is of one piece."""
        key = f"server {self._settings.api_url}"
        known = self._store.meta_json(key, _SERVER)
        if known is None:
            server = _probe(self._client, self._settings.attempts)
            self._store.save(Page(usage={"": self._client.take_usage()}))
            self._store.set_meta(key, json.dumps(asdict(server)))
            return server
        return known


def _probe(client: Client, attempts: int) -> Server:
    """Look the newer fields up in the server's schema; one that hides it is taken to have none."""
    try:
        data = ask_sized(client, BatchSize(1), lambda _: INTROSPECTION, attempts)[0].data
    except RequestRefused:
        return Server()
    issue, closed = (_fields(data.get(name)) for name in ("issue", "closed"))
    return Server(
        duplicate_of="duplicateOf" in issue,
        closed_duplicate_of="duplicateOf" in closed,
        enable_duplicate="enableDuplicate" in issue.get("stateReason", ()),
    )


def _fields(kind: TypeNode | None) -> dict[str, list[str]]:
    """A type's fields and their arguments."""
    fields = (kind.fields or ()) if kind else ()
    return {field.name: [argument.name for argument in field.args or ()] for field in fields}


Job = Callable[[Worker], None]
RepoWork = Callable[[Crawl, RepoRow], None]
Jobs = queue.SimpleQueue[tuple[str, Job]]
Done = Callable[[str, Worker, RemoteError | None], None]

_POLL_S = 0.2


class GitHub:
    """Crawls repositories into a store. Whatever is called again goes on where it was stopped."""

    def __init__(
        self,
        settings: CrawlSettings,
        tokens: Sequence[Token],
        store: Store,
        listener: CrawlListener = ignore,
    ) -> None:
        if not tokens:
            raise ConfigError("a crawl needs at least one GitHub token")
        self._store, self._listener = store, listener
        self._stop = threading.Event()
        self._workers = [Worker(settings, token, store, self._stop, listener) for token in tokens]

    def check(self, repos: Sequence[str]) -> list[RepoRow]:
        """Look every repository up; the rows come back in the order asked for."""
        self._run("check", {"": lambda worker: check.check(worker.crawl(), repos)})
        rows = {row.name.lower(): row for row in self._store.repos()}
        return [rows[name.lower()] for name in repos]

    def search(self, repos: Sequence[str]) -> list[RepoRow]:
        """Fetch the threads of each repository that may be duplicates; see `crawl`."""
        return self._over(repos, "search", search.search)

    def sweep(self, repos: Sequence[str]) -> list[RepoRow]:
        """Fetch every thread of each repository; see `crawl`."""
        return self._over(repos, "sweep", sweep.sweep)

    def update(self, repos: Sequence[str]) -> list[RepoRow]:
        """Fetch every thread that changed since the crawl or the last update; see `crawl`."""
        return self._over(repos, "update", sweep.update)

    def fetch(self, refs: Sequence[IssueRef]) -> None:
        """Fetch issues by number, of any repository, that the store does not know yet."""
        unknown = {ref for ref in refs if self._store.kind(ref) is Kind.UNKNOWN}
        impossible = {ref for ref in unknown if not may_be_repository(ref.repo)}
        nowhere = (Absence.NO_REPOSITORY, RepoOutcome.NOT_FOUND.value)
        self._store.save(Page(missing=dict.fromkeys(impossible, nowhere)))
        unknown -= impossible
        self._look_up_homes({ref.repo for ref in unknown})
        listed = {row.full_name for row in self._store.repos()}
        groups: dict[str, list[IssueRef]] = {}
        for ref in self._note_homeless(unknown):
            home = IssueRef(self._store.full_name(ref.repo), ref.number)
            # Repositories that are only met in passing share their queries.
            groups.setdefault(home.repo if home.repo in listed else "", []).append(home)
        jobs: dict[str, Job] = {repo: partial(_fetch, group) for repo, group in sorted(groups.items())}
        self._run("fetch", jobs)

    def fetch_negative_sample(self, counts: Mapping[str, int], seed: int) -> dict[str, list[int]]:
        """Fetch a sample of each repository's issues, the same for the same seed."""
        samples: dict[str, list[int]] = {}

        def draw(crawl: Crawl, row: RepoRow) -> None:
            count = max(
                count for name, count in counts.items() if self._store.full_name(name) == row.full_name
            )
            samples[row.full_name] = fetch_negative_sample(crawl, row, count, seed)

        self._over(counts, "pool", draw)
        return {name: samples[name] for name in sorted(samples)}

    def close(self) -> None:
        """Let go of all connections."""
        self._stop.set()
        for worker in self._workers:
            worker.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _look_up_homes(self, repos: set[str]) -> None:
        """Look up repositories that nobody asked for but that targets are in."""
        known = {name.lower() for row in self._store.all_repos() for name in (row.name, row.full_name)}
        new = sorted(repo for repo in repos if repo.lower() not in known)
        if new:
            self._run("check", {"": lambda worker: check.check(worker.crawl(), new, listed=False)})

    def _note_homeless(self, refs: set[IssueRef]) -> set[IssueRef]:
        """Store those whose repository is not there, or not to be read, as missing; return the others."""
        rows = {row.name.lower(): row for row in self._store.all_repos()}
        rows |= {row.full_name.lower(): row for row in self._store.all_repos() if row.is_crawlable}
        homes = {ref: rows.get(ref.repo.lower()) for ref in refs}
        gone = {
            ref: (Absence.NO_REPOSITORY, row.outcome.value)
            for ref, row in homes.items()
            if row and not row.is_crawlable and row.outcome is not RepoOutcome.FAILED
        }
        self._store.save(Page(missing=gone))
        return {ref for ref, row in homes.items() if row and row.is_crawlable}

    def _over(self, repos: Iterable[str], stage: str, work: RepoWork) -> list[RepoRow]:
        """Do something for every crawlable repository, each once under whatever names it was asked for."""
        wanted = {name.lower() for name in repos}
        jobs: dict[str, Job] = {}
        for row in self._store.repos():
            if row.name.lower() in wanted and row.is_crawlable:
                jobs.setdefault(row.full_name, partial(_do, work, row))
        self._run(stage, jobs)
        return [row for row in self._store.repos() if row.name.lower() in wanted]

    def _run(self, stage: str, jobs: Mapping[str, Job]) -> None:
        shared: list[RemoteError] = []

        def done(name: str, worker: Worker, failure: RemoteError | None) -> None:
            self._settle(name, worker, failure)
            if failure and not name:
                shared.append(failure)
            self._listener(Finished(name, stage, str(failure or "")))

        self._listener(Began(stage, len(jobs)))
        work_off(jobs, self._workers[: max(1, len(jobs))], self._stop, done)
        if shared:
            raise shared[0]

    def _settle(self, name: str, worker: Worker, failure: RemoteError | None) -> None:
        """Book what a job spent on its last, fruitless requests, and mark its repository if it failed."""
        page = Page(usage={name: worker.take_usage()})
        if failure:
            page.repos = [
                replace(row, outcome=RepoOutcome.FAILED, detail=str(failure))
                for row in self._store.repos()
                if row.full_name == name
            ]
        self._store.save(page)


def _do(work: RepoWork, row: RepoRow, worker: Worker) -> None:
    work(worker.crawl(), row)


def _fetch(refs: Sequence[IssueRef], worker: Worker) -> None:
    fetch(worker.crawl(), refs)


def work_off(jobs: Mapping[str, Job], workers: Sequence[Worker], stop: threading.Event, done: Done) -> None:
    """Share jobs among workers; a job that fails stops no other, unless what it met concerns every job."""
    todo: Jobs = queue.SimpleQueue()
    for job in jobs.items():
        todo.put(job)
    threads, is_left = ThreadPoolExecutor(len(workers), "crawl"), False
    try:
        running = {threads.submit(_work, worker, todo, stop, done) for worker in workers}
        while running:
            # Not for ever: a library may have seen to it that Ctrl-C does not wake who waits.
            ended, running = wait(running, _POLL_S, FIRST_EXCEPTION)
            for future in ended:
                future.result()
    except BaseException as error:
        stop.set()
        is_left = isinstance(error, KeyboardInterrupt)  # a person does not wait for a server that hangs
        raise
    finally:
        threads.shutdown(wait=not is_left)


def _work(worker: Worker, todo: Jobs, stop: threading.Event, done: Done) -> None:
    """Do one job after the other, as long as there are any."""
    while not stop.is_set():
        try:
            name, job = todo.get_nowait()
        except queue.Empty:
            return
        failure: RemoteError | None = None
        try:
            job(worker)
        except (AuthError, RateLimited):
            done(name, worker, None)
            raise
        except CrawlStopped:
            pass
        except RemoteError as error:
            failure = error
        done(name, worker, failure)
