"""Measures what a permit costs beside a decision, and how long the import takes.

AGENT_AUTHORITY_URL, _API_KEY and _SUBJECT name a running service, on the same machine: ``script/server`` prints them.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import httpx

from agent_authority import AsyncAuthority, Authority, Question

ROUNDS, CALLS = 10, 100
QUESTION = Question(
    "payment.execute",
    purpose="invoice-settlement",
    context={"amount": "1200.00", "currency": "EUR", "jurisdiction": "DE", "arguments": {"invoice": "RE-416"}},
)


def timed(call: Callable[[], object]) -> float:
    """Returns the milliseconds of a call."""
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1000


def import_time() -> float:
    """Returns the milliseconds of ``import agent_authority`` in a new process: the median of several."""
    program = "import time; t = time.perf_counter(); import agent_authority; print((time.perf_counter() - t) * 1000)"
    runs = [subprocess.run([sys.executable, "-c", program], capture_output=True, check=True) for _ in range(15)]
    return statistics.median(float(run.stdout) for run in runs)


def show(name: str, ways: dict[str, Callable[[], object]], settle: Callable[[], object]) -> None:
    """Prints the median of each way to ask, and how much more it is than the first one."""
    times: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(ROUNDS):
        for way, call in ways.items():
            times[way] += [timed(call) for _ in range(CALLS)]
            settle()
    medians = {way: statistics.median(found[CALLS:]) for way, found in times.items()}
    base = next(iter(medians.values()))
    for way, median in medians.items():
        print(f"{name:8}{way:10}p50 {median:6.2f} ms   {median - base:+6.2f} ms")


def bare(client: Any, authority: Any) -> Callable[[], Any]:
    """Returns the decision alone: a call without this library."""
    body = json.dumps({**authority.question(QUESTION).to_json(), "include_record": True}).encode()
    headers = {"authorization": f"Bearer {os.environ['AGENT_AUTHORITY_API_KEY']}", "content-type": "application/json"}
    url = f"{os.environ['AGENT_AUTHORITY_URL']}/api/v1/runtime/evaluate"
    return lambda: client.post(url, content=body, headers=headers)


def measure_sync() -> None:
    with Authority.from_env() as authority, httpx.Client() as client:

        def permit() -> None:
            with authority.permit(QUESTION):
                pass

        ways = {"call": bare(client, authority), "decide": lambda: authority.decide(QUESTION), "permit": permit}
        show("sync", ways, authority.flush)


def measure_async() -> None:
    loop = asyncio.new_event_loop()
    authority, client = AsyncAuthority.from_env(), httpx.AsyncClient()

    async def permit() -> None:
        async with authority.permit(QUESTION):
            pass

    steps: dict[str, Callable[[], Any]] = {
        "call": bare(client, authority), "decide": lambda: authority.decide(QUESTION), "permit": permit,
    }  # fmt: skip

    def ran(step: Callable[[], Any]) -> Callable[[], object]:
        return lambda: loop.run_until_complete(step())

    show("asyncio", {way: ran(step) for way, step in steps.items()}, authority.flush)
    loop.run_until_complete(authority.close())


if __name__ == "__main__":
    print(f"import agent_authority: {import_time():.0f} ms")
    measure_sync()
    measure_async()
