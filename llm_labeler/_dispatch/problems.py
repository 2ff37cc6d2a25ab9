"""What ends one LLM's part of a run; the others' goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pairkit.errors import ConfigError, PairkitError, RemoteError


def together(problems: Sequence[PairkitError]) -> PairkitError:
    """Several problems as one, which names them all: of the kind of the first, or of the settings."""
    if len(problems) == 1:
        return problems[0]
    told = "; ".join(str(problem) for problem in problems)
    is_config = any(isinstance(problem, ConfigError) for problem in problems)
    return (ConfigError if is_config else RemoteError)(f"{len(problems)} LLMs can't be asked: {told}")


def by_llm(ends: Mapping[str, object]) -> dict[str, PairkitError]:
    """The problems among the ends of tasks.

    Raises:
        BaseException: an end that nobody can do anything about: a bug, or Ctrl-C.
    """
    for end in ends.values():
        if isinstance(end, BaseException) and not isinstance(end, PairkitError):
            raise end
    return {llm: end for llm, end in ends.items() if isinstance(end, PairkitError)}
