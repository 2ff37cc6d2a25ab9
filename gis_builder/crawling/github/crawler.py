"""The crawl's API: one worker for each token; the failure of a repository does not stop the others."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from queue import SimpleQueue

from gis_builder.crawl_progress import RunDisplay
from gis_builder.crawling.github import repositories, search
from gis_builder.crawling.github.access_tokens import Token
from gis_builder.crawling.github.client import Crawl, CrawlStopped, Unreachable
from gis_builder.crawling.github.fetch import fetch, fetch_negative_sample
from gis_builder.crawling.github.repositories import may_be_repository
from gis_builder.settings import CrawlSettings
from gis_builder.store import Absence, IssueRef, Kind, Page, RepoOutcome, RepoRow, Store
from pairkit.base.errors import AuthError, RateLimited, RemoteError

Job = Callable[[Crawl], None]

_POLL_S = 0.2  # maximum delay of Ctrl-C


class GitHub(AbstractContextManager["GitHub"]):
    """Crawls repositories into a store. Every method continues where an earlier call was stopped."""

    def __init__(
        self,
        settings: CrawlSettings,
        tokens: Sequence[Token],
        store: Store,
        show: RunDisplay,
    ) -> None:
        self._store = store
        self._show = show
        self._stop = threading.Event()
        self._workers = [
            Crawl(settings, token, store, self._stop, show) for token in tokens
        ]
        self._idle: SimpleQueue[Crawl] = SimpleQueue()
        for worker in self._workers:
            self._idle.put(worker)

    def check(self, repos: Sequence[str]) -> list[RepoRow]:
        """Look up the repositories and return their rows in this order."""
        self._run("check", {"": partial(repositories.check, names=repos)})
        return self._store.rows_of(repos)

    def search(self, repos: Sequence[str]) -> None:
        """Fetch the threads of likely duplicates."""
        self._for_each(repos, "search", search.search)

    def sweep(self, repos: Sequence[str]) -> None:
        """Fetch every thread."""
        self._for_each(repos, "sweep", repositories.sweep)

    def update(self, repos: Sequence[str]) -> None:
        """Fetch every thread that changed since the crawl or the last update."""
        self._for_each(repos, "update", repositories.update)

    def fetch(self, refs: Sequence[IssueRef]) -> None:
        """Fetch issues of any repository by number, unless the store knows them already."""
        unknown = [ref for ref in refs if self._store.kind(ref) is Kind.UNKNOWN]
        homes = sorted({ref.repo for ref in unknown})
        new = [
            repo
            for repo in filter(may_be_repository, homes)
            if not self._store.row(repo)
        ]
        if new:  # repositories of targets that weren't requested
            check_new = partial(repositories.check, names=new, listed=False)
            self._run("check", {"": check_new})
        listed = {row.full_name for row in self._store.repos()}
        groups: defaultdict[str, list[IssueRef]] = defaultdict(list)
        for ref in self._drop_inaccessible(unknown):
            repo = self._store.full_name(ref.repo)
            # Repositories that weren't requested share queries.
            group = repo if repo in listed else ""
            groups[group].append(IssueRef(repo, ref.number))
        jobs = {repo: partial(fetch, refs=groups[repo]) for repo in sorted(groups)}
        self._run("fetch", jobs)

    def fetch_negative_sample(self, counts: Mapping[str, int], seed: int) -> None:
        """Fetch a sample of each repository's issues; the seed determines it."""
        self._for_each(
            counts,
            "pool",
            lambda crawl, row: fetch_negative_sample(
                crawl, row, counts[row.full_name], seed
            ),
        )

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for worker in self._workers:
            worker.close()

    def _drop_inaccessible(self, refs: Iterable[IssueRef]) -> list[IssueRef]:
        """Store the references to missing or inaccessible repositories as missing; return the others."""
        accessible = []
        page = Page()
        for ref in refs:
            row = self._store.row(ref.repo)
            if not may_be_repository(ref.repo):
                page.missing[ref] = (Absence.NO_REPOSITORY, RepoOutcome.NOT_FOUND.value)
            elif row and row.is_crawlable:
                accessible.append(ref)
            elif row and row.outcome is not RepoOutcome.FAILED:
                page.missing[ref] = (Absence.NO_REPOSITORY, row.outcome.value)
        self._store.save(page)
        return accessible

    def _for_each(
        self, repos: Iterable[str], stage: str, work: Callable[..., None]
    ) -> None:
        """Run `work(crawl, row=row)` once for every crawlable repository."""
        requested = {name.lower() for name in repos}
        jobs: dict[str, Job] = {}
        for row in self._store.repos():
            if row.name.lower() in requested and row.is_crawlable:
                jobs.setdefault(row.full_name, partial(work, row=row))
        self._run(stage, jobs)

    def _run(self, stage: str, jobs: Mapping[str, Job]) -> None:
        """Distribute jobs to workers; only errors that concern every job stop the others."""
        self._show.began(stage, len(jobs))
        threads = ThreadPoolExecutor(len(self._workers), "crawl")
        failures = []
        is_interrupted = False
        try:
            running = {
                threads.submit(self._work, name, job) for name, job in jobs.items()
            }
            while running:
                # With a timeout, because some libraries install signal handlers that don't interrupt a wait.
                ended, running = wait(running, _POLL_S, FIRST_EXCEPTION)
                failures += [future.result() for future in ended]
        except BaseException as error:
            self._stop.set()
            is_interrupted = isinstance(error, KeyboardInterrupt)
            raise
        finally:
            # After Ctrl-C, don't wait for a server that hangs.
            threads.shutdown(wait=not is_interrupted, cancel_futures=True)
        for failure in filter(None, failures):
            raise failure

    def _work(self, name: str, job: Job) -> RemoteError | None:
        """Run a job with an idle worker; returns the failure of a job for several repositories."""
        worker = self._idle.get()
        failure: RemoteError | None = None
        try:
            job(worker)
        except CrawlStopped:
            pass
        except (AuthError, RateLimited, Unreachable):
            raise
        except RemoteError as error:
            failure = error
        finally:
            self._finish(name, worker, str(failure or ""))
            self._idle.put(worker)
        return None if name else failure

    def _finish(self, name: str, worker: Crawl, failure: str) -> None:
        """Store the end of a job, and the cost of its last requests."""
        name = self._store.full_name(name)  # it may have been renamed
        page = Page(usage={name: worker.take_usage()})
        # A job for several repositories has no name.
        for row in self._store.repos() if failure and name else ():
            if row.full_name == name:
                failed = replace(row, outcome=RepoOutcome.FAILED, detail=failure)
                page.repos.append(failed)
        self._store.save(page)
        self._show.finished(name, failure)
