"""Held calls across processes: each story returns what went wrong."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta, timezone
from typing import Any
from urllib.parse import quote

from driver import Driver
from proxy import ALLOWED, Proxy
from scenarios import Case, is_unpermitted, trail
from session import Session, TooSlow, order_of, read_file

WAITERS = 50
# The shortest `approval_ttl_seconds`.
EXPIRY_SECONDS = 60
# How often a story is tried that the machine was too slow for.
ATTEMPTS = 4


class Story:
    """One held call. Its programs share the file that the tool's body touches."""

    def __init__(self, shared: Session, language: str, tenant: str = "main"):
        self.shared, self.language, self.world = shared, language, shared.worlds[tenant]
        self.file = str(shared.folder / uuid.uuid4().hex)
        self.reference = uuid.uuid4().hex
        self.began = datetime.now(timezone.utc)
        self.proxies: list[Proxy] = []
        self.programs: list[Driver] = []
        self.faults: list[str] = []
        # The reason why the story has no result.
        self.too_slow: str | None = None
        # Faults that no slow machine explains.
        self.violations: list[str] = []

    async def run(self, program: Driver, order: dict[str, Any]) -> dict[str, Any]:
        answer = await program.run(order)
        if answer["outcome"] == "unavailable":
            raise TooSlow(answer)
        return answer

    async def order(self, **changes: Any) -> dict[str, Any]:
        proxy = self.shared.proxy([], self.reference)
        self.proxies.append(proxy)
        case = Case("held", {"call": "large", "expect": {}})
        order = order_of(self.shared, case, await proxy.start(), self.world, self.reference)
        return order | {"file": self.file} | changes

    async def fresh(self) -> Driver:
        self.programs.append(program := await Driver(self.language).start())
        return program

    async def held(self) -> str:
        """Asks in a program that ends afterwards, and returns the held call that it stored."""
        program = await self.fresh()
        answer = await self.run(program, await self.order())
        await program.stop()
        self.expect("outcome", answer["outcome"], "held")
        return answer.get("held", "")

    async def decide(self, verb: str) -> None:
        calls = [call for proxy in self.proxies for call in proxy.calls if call.approval_id]
        path = f"/api/v1/app/approvals/{calls[0].approval_id}/{verb}"
        await self.shared.approver.send("POST", path, {} if verb == "approve" else {"reason": "a case"})

    async def resume(self, held: str, **changes: Any) -> dict[str, Any]:
        program = await self.fresh()
        answer = await self.run(program, await self.order(held=held, **changes))
        await program.stop()
        return answer

    def expect(self, name: str, actual: Any, expected: Any) -> None:
        if actual != expected:
            self.faults.append(f"{name} is {actual}, not {expected}")

    def expect_runs(self, count: int) -> None:
        self.expect("runs of the tool", len(read_file(self.file)[0]), count)

    async def expect_claims(self, count: int) -> None:
        self.expect("claims", len(await self.claims()), count)

    async def claims(self) -> set[str]:
        """Returns the decisions that permitted the call, by the service's records and by its answers."""
        calls = [call for proxy in self.proxies for call in proxy.calls]
        answered = {call.decision_id for call in calls if call.decision_id and call.decision in ALLOWED}
        approvals = {call.approval_id for call in calls if call.approval_id}
        path = f"/api/v1/decisions?tenant_id={self.world.tenant}&decision=allow&limit=500"
        path += f"&since={(self.began - timedelta(minutes=1)).isoformat().replace('+00:00', 'Z')}"
        recorded, place = set(), ""
        while place is not None:
            page = await self.shared.owner.send("GET", f"{path}&page_token={quote(place)}" if place else path)
            recorded |= {item["decision_id"] for item in page["decisions"] if item.get("approval_id") in approvals}
            place = page.get("next_page_token")
        return recorded | answered

    async def end(self) -> None:
        """Ends the programs and proxies, and notes what no slow machine explains."""
        for program in self.programs:
            await program.stop()
        for proxy in self.proxies:
            proxy.close()
        starts = read_file(self.file)[0]
        if is_unpermitted(starts, self.proxies):
            self.violations.append(f"the tool ran without permission, or {len(starts)} times")
        if len(claims := await self.claims()) > 1:
            self.violations.append(f"one approval permitted the decisions {sorted(claims)}")

    def calls(self) -> list[str]:
        """Describes each call of each program, with keys and times, in the order of their beginning."""
        calls = [(call.began, number, call) for number, proxy in enumerate(self.proxies) for call in proxy.calls]
        return [
            f"{began:.3f} to {call.at:.3f} program {number}: {call.step} key={call.key} decision={call.decision} "
            f"id={call.decision_id} approval={call.approval_id} {call.outcome or ''} {call.note}"
            for began, number, call in sorted(calls, key=lambda row: row[:2])
        ]


async def approved_while_down(story: Story) -> None:
    held = await story.held()
    await story.decide("approve")
    answer = await story.resume(held)
    story.expect("outcome", answer["outcome"], "ran")
    story.expect_runs(1)
    answer = await story.resume(held)
    story.expect("second outcome", (answer["outcome"], answer.get("code")), ("denied", "used"))
    story.expect_runs(1)


async def approved_after_the_restart(story: Story) -> None:
    held = await story.held()
    resumed = asyncio.create_task(story.resume(held, wait=30))
    await asyncio.sleep(1)
    await story.decide("approve")
    story.expect("outcome", (await resumed)["outcome"], "ran")
    story.expect_runs(1)


async def declined_while_down(story: Story) -> None:
    held = await story.held()
    await story.decide("decline")
    answer = await story.resume(held, wait=5)
    story.expect("outcome", (answer["outcome"], answer.get("code")), ("denied", "declined"))
    story.expect_runs(0)


async def withdrawn_while_down(story: Story) -> None:
    held = await story.held()
    await story.decide("approve")
    await story.decide("withdraw")
    answer = await story.resume(held, wait=5)
    story.expect("outcome", (answer["outcome"], answer.get("code")), ("denied", "void"))
    story.expect_runs(0)


async def killed_while_waiting(story: Story) -> None:
    program = await story.fresh()
    waiting = asyncio.create_task(story.run(program, await story.order(wait=30)))
    held = asyncio.create_task(story.proxies[0].held.wait())
    await asyncio.wait({waiting, held}, return_when=asyncio.FIRST_COMPLETED)
    if waiting.done():
        raise RuntimeError(f"the call was not held: {await waiting}")
    await program.stop()
    await asyncio.gather(waiting, return_exceptions=True)
    await story.decide("approve")
    # The new program asks the same question, without the old answer.
    answer = await story.run(await story.shared.driver(story.language), await story.order(wait=10))
    story.expect("outcome", answer["outcome"], "ran")
    story.expect_runs(1)


async def killed_while_the_tool_runs(story: Story) -> None:
    held = await story.held()
    await story.decide("approve")
    program = await story.fresh()
    running = asyncio.create_task(story.run(program, await story.order(held=held, lasts=30)))
    until = time.monotonic() + 20
    while not read_file(story.file)[0] and time.monotonic() < until:
        await asyncio.sleep(0.05)
    if running.done():
        raise RuntimeError(f"the tool does not run: {await running}")
    await program.stop()
    await asyncio.gather(running, return_exceptions=True)
    answer = await story.resume(held, wait=5)
    story.expect("outcome", (answer["outcome"], answer.get("code")), ("denied", "used"))
    story.expect_runs(1)


async def two_programs_with_one_held(story: Story) -> None:
    held = await story.held()
    both = [asyncio.create_task(story.resume(held, wait=20)) for _ in range(2)]
    await asyncio.sleep(1)
    await story.decide("approve")
    answers = sorted((answer["outcome"], answer.get("code")) for answer in await asyncio.gather(*both))
    story.expect("outcomes", answers, [("denied", "used"), ("ran", None)])
    story.expect_runs(1)
    await story.expect_claims(1)


async def many_waiters(story: Story) -> None:
    held = await story.held()
    program = await story.fresh()
    orders = [await story.order(held=held, wait=60) for _ in range(WAITERS)]
    waiting = [asyncio.create_task(program.run(order)) for order in orders]
    await asyncio.sleep(2)
    await story.decide("approve")
    answers = await asyncio.gather(*waiting)
    await program.stop()
    ended = [(answer["outcome"], answer.get("code")) for answer in answers]
    # A waiter without an answer may have used the approval. Its tool then never runs.
    if ("ran", None) not in ended and any(outcome == "unavailable" for outcome, _ in ended):
        raise TooSlow("a waiter got no answer")
    story.expect("waiters that ran", ended.count(("ran", None)), 1)
    others = {pair for pair in ended if pair[0] not in ("ran", "unavailable")}
    # A waiter that asks again opens another request, which it cancels when it sees that the approval is
    # used. Waiters that already wait for this request see that it is void.
    void = {("denied", "void")}
    story.expect("other outcomes", others | void, {("denied", "used")} | void)
    story.expect_runs(1)
    await story.expect_claims(1)


async def expired(story: Story) -> None:
    held = await story.held()
    answer = await story.resume(held, wait=EXPIRY_SECONDS + 20)
    story.expect("outcome", (answer["outcome"], answer.get("code")), ("denied", "expired"))
    story.expect_runs(0)


STORIES: list[tuple[Callable[[Story], Awaitable[None]], str]] = [
    (approved_while_down, "main"),
    (approved_after_the_restart, "main"),
    (declined_while_down, "main"),
    (withdrawn_while_down, "main"),
    (killed_while_waiting, "main"),
    (killed_while_the_tool_runs, "main"),
    (two_programs_with_one_held, "main"),
    (many_waiters, "main"),
    (expired, "brief"),
]


async def tell(shared: Session, language: str, repeat: int = 1) -> bool:
    """Runs each story, and prints what went wrong."""
    slots = asyncio.Semaphore(4)

    async def once(act: Callable[[Story], Awaitable[None]], tenant: str) -> Story:
        story = Story(shared, language, tenant)
        try:
            await act(story)
        except TooSlow as error:
            story.too_slow = f"the machine is too slow: {error}"
        except Exception as error:
            story.faults.append(f"{type(error).__name__}: {error}")
        await story.end()
        return story

    async def one(act: Callable[[Story], Awaitable[None]], tenant: str) -> list[str]:
        async with slots:
            for _ in range(ATTEMPTS):
                story = await once(act, tenant)
                if story.faults or story.violations or not story.too_slow:
                    break
            calls = story.calls() if story.violations else [trail(proxy) for proxy in story.proxies[:3]]
            found = [*story.violations, *story.faults] or ([story.too_slow] if story.too_slow else [])
            return [f"FAILED {language}: {act.__name__}: {fault}: " + "\n    ".join(calls) for fault in found]

    chosen = [pair for pair in STORIES for _ in range(repeat if pair[0] is not expired else 1)]
    found = [line for lines in await asyncio.gather(*(one(*pair) for pair in chosen)) for line in lines]
    print("\n".join([*found, f"{language}: {len(chosen)} held calls across programs, {len(found)} faults"]), flush=True)
    return not found
