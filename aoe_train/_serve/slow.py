"""Connections of clients that take too long: uvicorn itself waits for ever."""

from __future__ import annotations

import asyncio
from typing import cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_LATE = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


def protocol_of(receive_s: float, send_s: float) -> type[asyncio.Protocol]:
    """The protocol of HTTP that uvicorn has, which ends a connection whose client is too slow.

    Args:
        receive_s: In which a request's headers have to be there, from the connection or their first byte on.
        send_s: For which a client may take nothing of an answer.
    """

    class Impatient(H11Protocol):
        """A connection."""

        _headers: asyncio.TimerHandle | None = None
        _taking: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._headers = self.loop.call_later(receive_s, self._late)

        def connection_lost(self, exc: Exception | None) -> None:
            for timer in (self._headers, self._taking):
                if timer is not None:
                    timer.cancel()
            super().connection_lost(exc)

        def handle_events(self) -> None:
            super().handle_events()
            waits = self.conn.their_state is h11.IDLE
            if self._headers is not None and not waits:
                self._headers.cancel()
                self._headers = None
            elif self._headers is None and waits and self.conn.trailing_data[0]:
                self._headers = self.loop.call_later(receive_s, self._late)

        def pause_writing(self) -> None:
            super().pause_writing()
            self._watch()

        def resume_writing(self) -> None:
            super().resume_writing()
            if self._taking is not None:
                self._taking.cancel()

        def _watch(self) -> None:
            left = self.transport.get_write_buffer_size()
            self._taking = self.loop.call_later(send_s, self._check, left)

        def _check(self, left: int) -> None:
            if self.transport.get_write_buffer_size() < left:
                self._watch()
            else:
                self.transport.abort()

        def _late(self) -> None:
            if not self.transport.is_closing():
                self.transport.write(_LATE)
                self.transport.close()

    return cast("type[asyncio.Protocol]", Impatient)
