"""A test server with OpenAI's protocol and injected faults; it has no model.

Its answers follow from the question by fixed rules, so equal questions get equal answers. They show that
calls, retries, storage and parsing work; no figure of quality may come from them.

It serves chat completions, the list of models, files, batches, and its own counts at `/stats`.
"""

from tests.support.llm.server import Server, serve
from tests.support.llm.service import FAULT_KINDS, PASSING, FaultKind, Faults, Options, Stats

__all__ = ["FAULT_KINDS", "PASSING", "FaultKind", "Faults", "Options", "Server", "Stats", "serve"]
