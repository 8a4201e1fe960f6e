"""HTTP/1.1 messages on a connection. Each connection carries one request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field


@dataclass
class Message:
    """A request or a response. `start` is its first line."""

    start: str
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)

    def without(self, *names: str) -> list[tuple[str, str]]:
        return [(key, value) for key, value in self.headers if key.lower() not in names]

    @property
    def status(self) -> int:
        return int(self.start.split(" ")[1])

    def head(self, headers: list[tuple[str, str]]) -> bytes:
        lines = [self.start, *(f"{key}: {value}" for key, value in headers), "", ""]
        return "\r\n".join(lines).encode("latin-1")

    def whole(self) -> bytes:
        """Returns the bytes of a message whose connection is closed after it."""
        kept = self.without("connection", "content-length", "transfer-encoding")
        length = ("content-length", str(len(self.body)))
        return self.head([*kept, length, ("connection", "close")]) + self.body


async def read_head(reader: asyncio.StreamReader) -> Message:
    text = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    start, *lines = text[:-4].split("\r\n")
    pairs = (line.split(":", 1) for line in lines)
    return Message(start, [(key, value.strip()) for key, value in pairs])


async def chunks(reader: asyncio.StreamReader, message: Message) -> AsyncGenerator[bytes, None]:
    """Yields the parts of a body as they arrive."""
    if "chunked" in (message.header("transfer-encoding") or ""):
        while size := int((await reader.readline()).split(b";")[0], 16):
            yield await reader.readexactly(size)
            await reader.readline()
        while (await reader.readline()).strip():
            pass
    elif length := message.header("content-length"):
        yield await reader.readexactly(int(length))
    elif message.start.startswith("HTTP/"):
        while part := await reader.read(65536):
            yield part


async def read_body(reader: asyncio.StreamReader, message: Message) -> bytes:
    return b"".join([part async for part in chunks(reader, message)])
