"""Guards the tool of each case with the Python library: `tool.py async` or `tool.py sync`.

Reads a case a line from the standard input, and writes the outcome of each as a line.
"""

from __future__ import annotations

import asyncio
import datetime
import json
import logging
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

OFFSET = int(os.environ.get("CLOCK_OFFSET", "0"))


def shift_wall_clock() -> None:
    """Sets the wall clock of this process wrong. The monotonic clock is not changed."""
    real_time, real_date = time.time, datetime.datetime

    class Shifted(real_date):
        @classmethod
        def now(cls, tz=None):
            return real_date.now(tz) + datetime.timedelta(seconds=OFFSET)

        @classmethod
        def utcnow(cls):
            return real_date.utcnow() + datetime.timedelta(seconds=OFFSET)

    time.time = lambda: real_time() + OFFSET
    datetime.datetime = Shifted


if OFFSET:
    shift_wall_clock()

import agent_authority as library  # noqa: E402
from agent_authority import Denied, Held, Unavailable, current_permit  # noqa: E402


def note(order: dict[str, Any], word: str) -> None:
    with open(order["file"], "a") as file:
        file.write(f"{word}\n")


def begin(order: dict[str, Any]) -> None:
    note(order, f"started {time.monotonic_ns()}")
    if order["fails"]:
        raise RuntimeError("the tool fails")


def options(order: dict[str, Any]) -> dict[str, Any]:
    return {
        "purpose": order["purpose"],
        "amount": lambda a: a["amount"],
        "currency": lambda a: a["currency"],
        "context": lambda a: {"jurisdiction": a["jurisdiction"]},
        "wait": order["wait"],
        "watch": order["watch"],
        "before": {name: lambda _: None for name in order["handles"]},
    }


def arguments(order: dict[str, Any]) -> dict[str, Any]:
    given = order["arguments"]
    return given | {"amount": Decimal(given["amount"])}


def settings(order: dict[str, Any]) -> dict[str, Any]:
    names = {"url": "url", "api_key": "key", "subject": "subject", "jwks": "jwks", "timeout": "deadline"}
    return {option: order[name] for option, name in names.items()}


def failed(error: BaseException, has_started: bool) -> dict[str, Any]:
    if isinstance(error, Denied):
        outcome = "stopped" if has_started and error.code == "stopped" else "denied"
        return {"outcome": outcome, "code": error.code, "message": str(error)}
    if isinstance(error, Held):
        return {"outcome": "held", "held": json.dumps(error.to_json())}
    if isinstance(error, Unavailable):
        return {"outcome": "unavailable", "message": str(error)}
    is_own = isinstance(error, RuntimeError) and str(error) == "the tool fails"
    return {"outcome": "failed" if is_own else "error", "message": f"{type(error).__name__}: {error}"}


async def call_async(order: dict[str, Any]) -> dict[str, Any]:
    authority = library.AsyncAuthority(**settings(order))

    @authority.guard(order["action"], **options(order))
    async def pay(amount, currency, jurisdiction, reference):
        begin(order)
        try:
            await asyncio.sleep(order["lasts"])
            note(order, "finished")
        finally:
            note(order, f"ended {time.monotonic_ns()}")

    try:
        if "held" in order:
            await pay.resume(Held.from_json(order["held"]), **arguments(order))
        else:
            await pay(**arguments(order))
        return {"outcome": "ran"}
    except Exception as error:
        return failed(error, os.path.exists(order["file"]))
    finally:
        CLOSING.add(task := asyncio.create_task(authority.close()))
        task.add_done_callback(CLOSING.discard)


def call_sync(order: dict[str, Any]) -> dict[str, Any]:
    authority = library.Authority(**settings(order))

    @authority.guard(order["action"], **options(order))
    def pay(amount, currency, jurisdiction, reference):
        begin(order)
        ends = time.monotonic() + order["lasts"]
        try:
            while time.monotonic() < ends:
                current_permit().raise_if_stopped()
                time.sleep(0.02)
            note(order, "finished")
        finally:
            note(order, f"ended {time.monotonic_ns()}")

    try:
        if "held" in order:
            pay.resume(Held.from_json(order["held"]), **arguments(order))
        else:
            pay(**arguments(order))
        return {"outcome": "ran"}
    except Exception as error:
        return failed(error, os.path.exists(order["file"]))
    finally:
        threading.Thread(target=authority.close, daemon=True).start()


def value_of(tagged: Any) -> Any:
    """Returns the Python value of a value in arguments.json."""
    if isinstance(tagged, list):
        return [value_of(item) for item in tagged]
    if not isinstance(tagged, dict):
        return tagged
    [(kind, content)] = tagged.items()
    if kind == "object":
        return {name: value_of(member) for name, member in content.items()}
    make = {
        "decimal": Decimal, "double": float, "integer": int, "bytes": bytes.fromhex,
        "datetime": datetime.datetime.fromisoformat, "date": datetime.date.fromisoformat,
        "surrogate": lambda code: chr(int(code, 16)),
    }
    return make[kind](content)


def convert(order: dict[str, Any]) -> dict[str, Any]:
    """Returns the canonical text of a call's arguments as the question has them."""
    from agent_authority.jcs import canonical
    from agent_authority.values import freeze_members, redact

    try:
        call = order["convert"]
        frozen = freeze_members({name: value_of(value) for name, value in call["arguments"].items()}, "arguments")
        return {"text": canonical(redact(frozen, call["redact"], order["redact_key"].encode())).decode()}
    except ValueError as error:
        return {"refused": str(error)}


OUTPUT = threading.Lock()
CLOSING: set[Any] = set()


def write(order: dict[str, Any], answer: dict[str, Any]) -> None:
    with OUTPUT:
        print(json.dumps(answer | {"id": order["id"]}), flush=True)


async def run_async() -> None:
    async def one(order: dict[str, Any]) -> None:
        try:
            write(order, convert(order) if "convert" in order else await call_async(order))
        except Exception as error:
            write(order, failed(error, False))

    # Closing an authority occupies a thread until its reports are sent.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(200))
    running = set()
    while line := await asyncio.to_thread(sys.stdin.readline):
        running.add(task := asyncio.create_task(one(json.loads(line))))
        task.add_done_callback(running.discard)
    await asyncio.gather(*running)


def run_sync() -> None:
    def one(order: dict[str, Any]) -> None:
        try:
            write(order, convert(order) if "convert" in order else call_sync(order))
        except Exception as error:
            write(order, failed(error, False))

    for line in sys.stdin:
        threading.Thread(target=one, args=[json.loads(line)], daemon=True).start()


if __name__ == "__main__":
    logging.disable()
    if sys.argv[1] == "async":
        asyncio.run(run_async())
    else:
        run_sync()
