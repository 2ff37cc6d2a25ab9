"""A test server with OpenAI's protocol and injected faults; it has no model.

Fixed rules make the answers, so equal questions get equal answers. They test calls, retries, storage and
parsing; never use them to measure quality.

It serves chat completions, the list of models, files, batches, and its counts at `/stats`.
"""

from tests.support.llm.server import Server, serve
from tests.support.llm.service import FaultKind, Faults, Options, Stats, reply

__all__ = ["FaultKind", "Faults", "Options", "Server", "Stats", "reply", "serve"]
