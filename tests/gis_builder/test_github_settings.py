import pytest

from gis_builder.settings import BuildSettings
from gis_builder.settings.crawl import CrawlSettings
from pairkit.app.errors import ConfigError
from pairkit.app.settings import load_settings


@pytest.mark.parametrize(
    "url",
    ["", "ftp://x", "api.github.com", "http://", "http://[::bad", "http://x:99999", "http://x:port"],
)
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(ConfigError, match="expected a server's root"):
        load_settings(BuildSettings, flags={"crawl.api_url": url})


def test_a_password_in_the_address_is_refused_and_not_shown() -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(BuildSettings, flags={"crawl.api_url": "https://user:hunter2@host/api/v3"})
    assert "hunter2" not in str(caught.value)
    assert "api_url" in str(caught.value)


@pytest.mark.parametrize(
    ("url", "graphql"),
    [
        ("https://api.github.com", "https://api.github.com/graphql"),
        ("https://host/api/v3/", "https://host/api/graphql"),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000/graphql"),
    ],
)
def test_where_queries_are_posted(url: str, graphql: str) -> None:
    assert CrawlSettings(api_url=url).graphql_url == graphql
