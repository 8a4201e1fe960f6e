"""A scripted model for Claude Code: a local server that speaks the Messages API."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Blocks = list[dict[str, Any]]
#: Returns the blocks of the model's next answer, from the messages and the names of the tools.
Script = Callable[[list[dict[str, Any]], set[str]], Blocks]


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def tool_use(call_id: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def tool_results(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the results of tools that the model has seen."""
    return [
        block
        for message in messages
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "tool_result"
    ]


def in_turn(*answers: Blocks) -> Script:
    """Returns a script that gives one answer after the other, and then repeats the last."""
    left = list(answers)

    def script(messages: list[dict[str, Any]], tools: set[str]) -> Blocks:
        return left.pop(0) if len(left) > 1 else left[0]

    return script


class ScriptedClaude:
    """Serves a script at ``url`` until closed. ``requests`` has the bodies of all requests."""

    def __init__(self, script: Script) -> None:
        self.requests: list[dict[str, Any]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                pass

            def do_HEAD(self) -> None:
                self.send_response(200)
                self.end_headers()

            def do_GET(self) -> None:
                self.send_error(404)

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                if "/v1/messages" not in self.path or "count_tokens" in self.path:
                    self.send_error(404)
                    return
                outer.requests.append(body)
                tools = {tool["name"] for tool in body.get("tools", [])}
                blocks = script(body["messages"], tools) if tools else [text("ok")]
                if body.get("stream"):
                    self._stream(body["model"], blocks)
                else:
                    self._whole(body["model"], blocks)

            def _whole(self, model: str, blocks: Blocks) -> None:
                data = json.dumps({**_message(model, blocks), "content": blocks}).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def _stream(self, model: str, blocks: Blocks) -> None:
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                for event in _events(model, blocks):
                    line = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
                    self.wfile.write(line.encode())
                self.close_connection = True

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _message(model: str, blocks: Blocks) -> dict[str, Any]:
    calls = any(block["type"] == "tool_use" for block in blocks)
    return {
        "id": "msg_scripted",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def _events(model: str, blocks: Blocks) -> Iterator[dict[str, Any]]:
    whole = _message(model, blocks)
    yield {"type": "message_start", "message": {**whole, "stop_reason": None}}
    for index, block in enumerate(blocks):
        if block["type"] == "text":
            start, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            start = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_start", "index": index, "content_block": start}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}
