"""The crawl: GitHub's issues into a store, with the fewest requests, resumable at every page."""

from gis_builder._github.credentials import find_tokens
from gis_builder._github.github import GitHub
from gis_builder._github.progress import Advanced, Finished, Listener, Progress, Waiting
from gis_builder._github.rest import RestRoute
from gis_builder._github.route import GraphQLRoute, Route, RouteFactory
from gis_builder._github.settings import CrawlSettings
from gis_builder._github.tokens import Token

__all__ = [
    "Advanced",
    "CrawlSettings",
    "Finished",
    "GitHub",
    "GraphQLRoute",
    "Listener",
    "Progress",
    "RestRoute",
    "Route",
    "RouteFactory",
    "Token",
    "Waiting",
    "find_tokens",
]
