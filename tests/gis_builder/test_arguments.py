"""Invalid arguments and settings are named in a one-line message."""

import gis_builder
from gis_builder.settings import CrawlSettings
from pairkit import ConfigError, DataError
from tests.support.shorthand import raises, table

ACCESS = {"token": "any", "api_url": "http://127.0.0.1:9"}


@table(
    """
        name, arguments, given, message
        import_tracker | (None, 'work') | {} | folder = None: expected a path
        pair | ('work', None) | {} | "out = None: "
        explain | ('work', 58) | {} | "issue = 58: "
        detect | ('work',) | {'settings': 5} | settings = 5: expected a list
        detect | ('work',) | {'settings': {5: 5}} | "settings = 5: "
        detect | ('work',) | {'settings': 'detect.x'} | setting 'detect.x': expected key=value
        detect | ('s3://bucket/work',) | {} | work = s3:/bucket/work: expected a path, not a URL
        plan | ([1],) | ACCESS | "repos = 1: "
        plan | (['a/b'],) | {'token': 5, 'api_url': 'http://127.0.0.1:9'} | "token = 5: "
    """,
    ACCESS=ACCESS,
)
def test_an_invalid_argument_is_named(
    *, name, arguments, given, message, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with raises((ConfigError, DataError)) as raised:
        getattr(gis_builder, name)(*arguments, **given)
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)


def test_a_password_in_the_address_is_refused_and_not_shown():
    with raises(ConfigError) as caught:
        gis_builder.plan(
            "a/b", **ACCESS | {"api_url": "https://user:hunter2@host/api/v3"}
        )
    assert "hunter2" not in str(caught.value)
    assert "api_url" in str(caught.value)


def test_the_address_of_queries_is_no_root():
    with raises(ConfigError, match="api_url is .*/graphql: expected the API's root"):
        CrawlSettings(api_url="https://api.github.com/graphql/")
