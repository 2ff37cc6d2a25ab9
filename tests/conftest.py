"""What holds for all tests."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.hub_server"]

# How long an example takes says more of what else the machine does than of the code.
settings.register_profile(
    "house", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
# The same examples each time, so that a change and not chance makes a test fail; `make search` tries others.
settings.register_profile("search", settings.get_profile("house"), derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "house"))
