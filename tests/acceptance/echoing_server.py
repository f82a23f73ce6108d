"""A server on loopback that repeats the secrets it is sent, in every encoding, as answers and as errors."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from threading import Thread
from urllib.parse import parse_qs, urlsplit

from tests.redaction.encodings import ENCODINGS


def forms(secret: str) -> str:
    """Write a secret in every encoding, each on its line."""
    return "\n".join(f"{name}: {encode(secret, Random(name))}" for name, encode in ENCODINGS.items())


class Echo(BaseHTTPRequestHandler):
    """Answers like a model at /v1/messages, like any service elsewhere; an input with `fail` is refused."""

    def do_POST(self) -> None:
        """Repeat what came."""
        asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
        found = [value for name, value in self.headers.items() if name.lower().startswith("x-")]
        found += [value for values in parse_qs(urlsplit(self.path).query).values() for value in values]
        text = "\n".join(map(forms, found))
        if "fail" in asked:
            # So that what the error is cut to ends in the middle of the secret.
            self._reply(400, self._refusal("x" * 287 + found[0] + text))
        else:
            self._reply(200, self._answer(text))

    def _answer(self, text: str) -> dict[str, object]:
        if not self.path.startswith("/v1/messages"):
            return {"output": text}
        usage = {"input_tokens": 1, "output_tokens": 1}
        content = [{"type": "text", "text": text}]
        named = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5"}
        return {
            **named,
            "content": content,
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": usage,
        }

    def _refusal(self, text: str) -> dict[str, object]:
        return {"type": "error", "error": {"type": "invalid_request_error", "message": text}}

    def _reply(self, status: int, body: dict[str, object]) -> None:
        data = json.dumps(body).replace("/", "\\/").encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
        """Print nothing."""


@contextmanager
def echoing_server() -> Iterator[str]:
    """Lend such a server; yields its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
