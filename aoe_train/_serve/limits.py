"""How much a server takes at a time."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pairkit.config import Settings

MIB = 1 << 20


class Limits(Settings):
    """What is more than this is refused, with a status that says so.

    Attributes:
        body_mib: Of a request's body, in MiB.
        texts: Of a request.
        queue: Texts that are worked on or wait; a request beyond them is told when to come again.
        batch_tokens: That run at once; what is small comes between the batches of what is large.
        connections: At once.
        held_mib: All bodies that are worked on together, in MiB.
        receive_s: In which a request has to arrive, its headers and its body each.
        send_s: For which a client may take nothing of its answer.
        stop_s: In which what runs is finished when the server is told to stop.
    """

    body_mib: Annotated[int, Field(ge=1, le=1024)] = 8
    texts: Annotated[int, Field(ge=1)] = 2048
    queue: Annotated[int, Field(ge=1)] = 16_384
    batch_tokens: Annotated[int, Field(ge=1)] = 8192
    connections: Annotated[int, Field(ge=1)] = 512
    held_mib: Annotated[int, Field(ge=1)] = 256
    receive_s: Annotated[float, Field(gt=0)] = 30
    send_s: Annotated[float, Field(gt=0)] = 30
    stop_s: Annotated[float, Field(gt=0)] = 30
