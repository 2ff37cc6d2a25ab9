"""A local server with OpenAI's `/embeddings` and chosen faults."""

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import SimpleNamespace


def vector(text, dim=3):
    """The server's vector of a text."""
    return [float(len(text)), float(text.count("a")), *[0.5] * (dim - 2)]


def listing(texts, dim=3):
    """A correct answer, in another order than the request, as the protocol allows."""
    entries = [
        {"object": "embedding", "index": place, "embedding": values}
        for place, values in enumerate(vector(text, dim) for text in texts)
    ]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return {"object": "list", "data": entries[::-1], "model": "m", "usage": usage}


@contextmanager
def serving():
    """A server that runs during the block: its url, its requests, and a function that answers."""
    found = SimpleNamespace(
        answer=lambda texts, _: (200, listing(texts)), asked=[], keys=[]
    )

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            found.asked.append(body)
            found.keys.append(self.headers["authorization"])
            status, answer = found.answer(body["input"], len(found.asked) - 1)
            payload = (
                answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            )
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(payload)))
            self.send_header("retry-after-ms", "1")
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found.url = f"http://127.0.0.1:{server.server_port}/v1"
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield found
        server.shutdown()
