"""A server whose response to each connection is defined by the test."""

import asyncio
from contextlib import asynccontextmanager


@asynccontextmanager
async def serving(answer):
    """Yield the port; `answer` receives the head of each request."""

    async def handle(reader, writer):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            await answer(writer, head)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def whole(body, status=200, **headers):
    """A complete response; underscores in header names become hyphens."""
    lines = [
        f"HTTP/1.1 {status} X",
        f"content-length: {len(body)}",
        "connection: close",
    ]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]

    async def answer(writer, head):
        writer.write("\r\n".join([*lines, "", ""]).encode() + body)

    return answer
