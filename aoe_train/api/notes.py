"""What a run says besides how far it is: left-out rows, warnings."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pairkit.app.progress import Listener


def notes(progress: bool | Listener) -> Callable[[str], None]:
    """Where notes go: to stderr where progress is shown there, else nowhere."""
    from pairkit.app.terminal import say

    return lambda message: say(message, quiet=progress is not True)
