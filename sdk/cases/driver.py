"""A program in one of the languages that guards the tool of each case with the library."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LANGUAGES = {
    "python": [os.environ.get("PYTHON", sys.executable), str(HERE / "tool.py"), "async"],
    "python-sync": [os.environ.get("PYTHON", sys.executable), str(HERE / "tool.py"), "sync"],
    "typescript": [os.environ.get("NODE", "node"), os.environ.get("TOOL_MJS", str(HERE / "tool.mjs"))],
}


class Driver:
    """A running program. It reads a case a line, and writes the outcome of each."""

    def __init__(self, language: str, clock: int = 0):
        self.language, self.clock = language, clock
        self.waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}

    async def start(self) -> Driver:
        self.process = await asyncio.create_subprocess_exec(
            *LANGUAGES[self.language], stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            env=os.environ | {"CLOCK_OFFSET": str(self.clock), "no_proxy": "127.0.0.1"}, limit=1 << 24,
        )
        self.reader = asyncio.create_task(self.read())
        return self

    async def read(self) -> None:
        assert self.process.stdout
        while line := await self.process.stdout.readline():
            answer = json.loads(line)
            self.waiting.pop(answer["id"]).set_result(answer)
        for future in self.waiting.values():
            future.set_exception(RuntimeError(f"the {self.language} program ended"))

    async def run(self, order: dict[str, Any], timeout: float = 150) -> dict[str, Any]:
        assert self.process.stdin
        future = self.waiting[order["id"]] = asyncio.get_running_loop().create_future()
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        return await asyncio.wait_for(future, timeout)

    async def stop(self) -> None:
        """Ends the program at once, as a crash does."""
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
