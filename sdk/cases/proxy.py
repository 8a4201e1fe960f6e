"""A proxy in front of the service that fails as a case specifies, and records the calls."""

from __future__ import annotations

import asyncio
import re
import time
from contextlib import aclosing
from dataclasses import dataclass, field
from random import Random
from urllib.parse import unquote

from answer import read
from changes import CHANGES
from http1 import Message, chunks, read_body, read_head
from refusal import ERRORS, of_a_gateway, refusal

# Longer than the short deadline of a call.
DELAY_SECONDS = 3.0
SLOW_SECONDS = 1.0
ALLOWED = ("allow", "allow_with_constraints")
PAGES = {
    "html": Message("HTTP/1.1 200 OK", [("content-type", "text/html")], b"<html>Welcome</html>"),
    "rubbish": Message("HTTP/1.1 200 OK", [("content-type", "application/json")], b"\x00\xff{]\x9c" * 40),
    "empty": Message("HTTP/1.1 200 OK", [("content-type", "application/json")]),
    "empty_object": Message("HTTP/1.1 200 OK", [("content-type", "application/json")], b"{}"),
}
STEPS = [
    ("watch", re.compile(r":watch-stop-conditions|/WatchStopConditions$")),
    ("wait", re.compile(r":watch\b|/WatchDecision$|/approvals/|/GetAskedApproval$")),
    ("report", re.compile(r":report$|/ReportDecision$")),
    ("ask", re.compile(r"/evaluate$|/authorize$|/Evaluate$|/Authorize$|/EvaluateDecision$")),
]


@dataclass
class Fault:
    """Happens to the first `times` calls of a step, or to all."""

    step: str
    fault: str
    times: int | None = 1
    retry_after: str | None = None


@dataclass
class Call:
    """A call to the service. `permits` is set if the caller received a genuine permission."""

    step: str
    fault: str | None
    began: float
    key: str | None = None
    # When the answer was sent.
    at: float = 0
    # The outcome in a report.
    outcome: str | None = None
    decision_id: str | None = None
    decision: str | None = None
    approval_id: str | None = None
    permits: bool = False
    # Whether the service answered it with 200.
    reached: bool = False
    # The error in the service's answer.
    note: str = ""


def path_of(request: Message) -> str:
    return request.start.split(" ")[1].split("?")[0]


def step_of(request: Message) -> str:
    path = path_of(request)
    step = next((step for step, pattern in STEPS if pattern.search(path)), "other")
    return "again" if step == "ask" and b"svc:approval:" in request.body else step


def is_grpc(request: Message) -> bool:
    return "grpc" in (request.header("content-type") or "")


@dataclass
class Proxy:
    """The proxy of one case. Late calls of another case, whose proxy had the same port, are refused."""

    host: str
    port: int
    faults: list[Fault]
    random: Random
    # The argument that only this case's questions have.
    reference: str
    # The answer that the fault `older` sends.
    older: Message | None = None
    calls: list[Call] = field(default_factory=list)
    # The answers of the service to questions.
    answers: list[Message] = field(default_factory=list)
    held: asyncio.Event = field(default_factory=asyncio.Event)
    open_calls: set[asyncio.Task[None] | None] = field(default_factory=set)

    async def start(self) -> str:
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"

    def close(self) -> None:
        self.server.close()
        for task in list(self.open_calls):
            if task:
                task.cancel()

    @property
    def decisions(self) -> set[str]:
        return {call.decision_id for call in self.calls if call.decision_id}

    @property
    def reports(self) -> list[str]:
        """The outcomes in the reports that the service took."""
        return [call.outcome for call in self.calls if call.outcome and call.reached]

    def count(self, step: str) -> int:
        return sum(call.step == step for call in self.calls)

    @property
    def was_slow(self) -> bool:
        """Whether the service, without a fault, took more than half of a call's deadline."""
        asked = [call for call in self.calls if call.step in ("ask", "again") and call.fault is None]
        return any(call.note or not call.at or call.at - call.began > SLOW_SECONDS for call in asked)

    def is_foreign(self, request: Message, step: str) -> bool:
        """Whether the call is about a question of another case."""
        if step in ("ask", "again"):
            return self.reference.encode() not in request.body
        named = unquote(path_of(request)).encode() + request.body
        return step == "report" and not any(decision.encode() in named for decision in self.decisions)

    def next_fault(self, step: str) -> Fault | None:
        for fault in self.faults:
            if fault.step == step and fault.times != 0:
                fault.times = fault.times and fault.times - 1
                return fault
        return None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open_calls.add(task := asyncio.current_task())
        try:
            request = await read_head(reader)
            request.body = await read_body(reader, request)
            step = step_of(request)
            if self.is_foreign(request, step):
                self.calls.append(Call(f"foreign {step}", None, time.monotonic(), request.header("idempotency-key")))
                return writer.transport.abort()
            fault = self.next_fault(step)
            name = fault.fault if fault else None
            call = Call(step, name, time.monotonic(), request.header("idempotency-key"))
            if step == "report":
                call.outcome = re.search(rb"executed|failed|abandoned", request.body)[0].decode()
            self.calls.append(call)
            if step in ("wait", "watch"):
                await self.stream(request, fault, writer)
            else:
                await self.unary(request, fault, call, writer)
        except (OSError, EOFError, asyncio.CancelledError):
            pass  # The caller, the service or the run has ended.
        finally:
            self.open_calls.discard(task)
            writer.close()

    async def open(self, request: Message) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(self.host, self.port)
        writer.write(request.whole())
        await writer.drain()
        return reader, writer

    async def ask(self, request: Message, call: Call) -> Message:
        """Returns the service's answer, and notes its decision."""
        reader, writer = await self.open(request)
        response = await read_head(reader)
        response.body = await read_body(reader, response)
        writer.close()
        call.reached = response.status == 200 and response.header("grpc-status") in (None, "0")
        if not call.reached:
            call.note = f"{response.status} {response.header('grpc-message') or response.body[:300]!r}"
        if call.step in ("ask", "again"):
            self.answers.append(response)
            self.note(request, response, call)
        return response

    def note(self, request: Message, response: Message, call: Call) -> None:
        if response.status != 200 or not response.body or response.body[0] == 0x80:
            return
        answer = read(path_of(request), response.body, is_grpc(request))
        call.decision_id, call.decision = answer.get("decision_id"), answer.get("decision")
        call.approval_id = answer.get("approval_id")

    async def unary(self, request: Message, fault: Fault | None, call: Call, writer: asyncio.StreamWriter) -> None:
        name = call.fault
        if name == "cut_before":
            return writer.transport.abort()
        if name == "silent":
            return await asyncio.sleep(3 * DELAY_SECONDS)
        response = self.instead(request, fault)
        if response is None:
            response = await self.ask(request, call)
            if name == "double":
                await self.ask(request, call)
            if name == "double_second":
                response = await self.ask(request, call)
        if name == "cut_after":
            return writer.transport.abort()
        if name == "delay":
            await asyncio.sleep(DELAY_SECONDS)
        elif name == "late":
            await asyncio.sleep(1.3)
        elif name == "unavailable_after":
            response = refusal("unavailable", is_grpc(request), None)
        elif name == "replayed":
            response.headers.append(("idempotency-replayed", "true"))
        elif name in CHANGES and call.decision is None:
            # The service answered with an error of its own: the fault happens to the next call.
            call.fault = None
            if fault and fault.times is not None:
                fault.times += 1
        elif name in CHANGES:
            response = self.changed(request, response, name)
        whole = response.whole()
        if name == "cut_midway":
            writer.write(whole[: -len(response.body) // 2])
            await writer.drain()
            return writer.transport.abort()
        is_genuine = name in (None, "delay", "late", "double")
        call.permits = is_genuine and call.decision in ALLOWED
        call.at = time.monotonic()
        if call.step in ("ask", "again") and call.decision == "require_approval":
            self.held.set()
        writer.write(whole)
        await writer.drain()

    def instead(self, request: Message, fault: Fault | None) -> Message | None:
        """Returns an answer that needs no service."""
        if fault is None:
            return None
        if fault.fault == "older":
            assert self.older
            return Message(self.older.start, self.older.without("idempotency-replayed"), self.older.body)
        if fault.fault in ERRORS:
            return refusal(fault.fault, is_grpc(request), fault.retry_after)
        if fault.fault.isdigit():
            return of_a_gateway(int(fault.fault))
        return PAGES.get(fault.fault)

    def changed(self, request: Message, response: Message, name: str) -> Message:
        answer = read(path_of(request), response.body, is_grpc(request))
        CHANGES[name](answer, self.random)
        return Message(response.start, response.headers, answer.body())

    async def stream(self, request: Message, fault: Fault | None, writer: asyncio.StreamWriter) -> None:
        name = fault.fault if fault else None
        if name == "cut_before":
            return writer.transport.abort()
        if name == "silent":
            return await asyncio.sleep(3 * DELAY_SECONDS)
        if response := self.instead(request, fault):
            writer.write(response.whole())
            return await writer.drain()
        reader, upstream = await self.open(request)
        try:
            response = await read_head(reader)
            if name == "cut_after":
                return writer.transport.abort()
            kept = response.without("connection", "content-length", "transfer-encoding")
            writer.write(response.head([*kept, ("connection", "close"), ("transfer-encoding", "chunked")]))
            async with aclosing(chunks(reader, response)) as parts:
                async for part in parts:
                    if name == "cut_midway":
                        part = part[: len(part) // 2]
                    writer.write(b"%x\r\n%s\r\n" % (len(part), part))
                    await writer.drain()
                    if name in ("cut_midway", "cut_after_first"):
                        return writer.transport.abort()
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        finally:
            upstream.close()
