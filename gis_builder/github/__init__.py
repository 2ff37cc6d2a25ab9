"""The crawl: GitHub's issues into a store, with the fewest requests, resumable at every page."""

from gis_builder.github.credentials import find_tokens
from gis_builder.github.github import GitHub
from gis_builder.github.progress import Advanced, Finished, Listener, Progress, Waiting
from gis_builder.github.rest import RestRoute
from gis_builder.github.route import GraphQLRoute, Route, RouteFactory
from gis_builder.github.settings import CrawlSettings
from gis_builder.github.tokens import Token

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
