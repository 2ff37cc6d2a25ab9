"""The local GitHub of the contract tests."""

from tests.contract.conftest import sample_url as sample_url
