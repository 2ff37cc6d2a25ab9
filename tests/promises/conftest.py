"""The material of the promises is that of the other tests."""

from tests.contract.conftest import gis, sample_build, sample_url  # noqa: F401
from tests.gis_builder.archive_world import built, source, threads  # noqa: F401
