"""The crawl: GitHub's issues into a store, with the fewest requests, resumable at every page."""

from gis_builder._github.crawler import GitHub
from gis_builder._github.credentials import find_tokens
from gis_builder._github.events import Advanced, Began, CrawlEvent, Finished, Listener, Waiting
from gis_builder._github.notices import Notices, Posted, Shown
from gis_builder._github.rest import RestRoute
from gis_builder._github.route import GraphQLRoute, Route, RouteFactory
from gis_builder._github.tokens import Token
from gis_builder._settings.crawl import CrawlSettings

__all__ = [
    "Advanced",
    "Began",
    "CrawlEvent",
    "CrawlSettings",
    "Finished",
    "GitHub",
    "GraphQLRoute",
    "Listener",
    "Notices",
    "Posted",
    "RestRoute",
    "Route",
    "RouteFactory",
    "Shown",
    "Token",
    "Waiting",
    "find_tokens",
]
