"""Runs the scenarios against a service, through a proxy that fails as each scenario says.

The environment has URL and OWNER_TOKEN of the service, TENANT (the tenant to create) and
APPROVER_TOKEN (a token of its role `approver`).
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import tempfile
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import digests
import holds
from driver import LANGUAGES
from http1 import Message
from proxy import Fault, Proxy
from scenarios import Case, Outcome, cases, differences, is_inconclusive, is_too_slow, is_unpermitted, repeated
from session import Session, TooSlow, order_of, prepare, read_file, read_times
from world import Service, World, found_id

# How long to wait for the report of an outcome.
REPORT_SECONDS = 40.0
CASE_SECONDS = 180
# How often a case is tried that the machine was too slow for.
ATTEMPTS = 6
REASONS = {"decline": {"reason": "not ordered"}}


async def prior_answer(shared: Session, case: Case, language: str, reference: str) -> Message | None:
    """Makes an earlier call, and returns the service's answer."""
    prior = case.get("prior")
    if prior is None:
        return None
    proxy = shared.proxy([], reference)
    url = await proxy.start()
    order = order_of(shared, case, url, shared.worlds[prior.get("tenant", "main")], reference)
    if "amount" in prior:
        order["arguments"]["amount"] = prior["amount"]
    driver = await shared.driver(language)
    answer = await driver.run(order)
    proxy.close()
    if is_inconclusive(answer):
        raise TooSlow(answer)
    if answer["outcome"] != "ran":
        raise RuntimeError(f"the earlier call: {answer}")
    return proxy.answers[0]


async def people_act(shared: Session, case: Case, proxy: Proxy, world: World) -> float:
    """Does what people do in this case, when the request is held or permitted. Returns the time of the act."""
    if case.people == "stop":
        while not proxy.count("watch"):
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.5)
        body = {"tenant_id": world.tenant, "actor_id": world.agent, "reason": "a case"}
        signal = await shared.owner.send("POST", "/api/v1/stop-signals", body)
        stopped = time.monotonic()
        until = stopped + REPORT_SECONDS
        while not proxy.reports and time.monotonic() < until:
            await asyncio.sleep(0.05)
        await shared.owner.send("POST", f"/api/v1/stop-signals/{found_id(signal)}/lift", {})
        return stopped
    await proxy.held.wait()
    approval = next(call.approval_id for call in proxy.calls if call.approval_id)
    if case.people == "cancel":
        agent = Service(shared.owner.url, world.key)
        await agent.send("POST", f"/v1/approvals/{approval}/cancel", {})
    else:
        # The caller has begun to wait, unless its wait fails.
        await asyncio.sleep(0.1)
        path, body = f"/api/v1/app/approvals/{approval}/{case.people}", REASONS.get(case.people, {})
        await shared.approver.send("POST", path, body)
    return time.monotonic()


@dataclass
class Result:
    """The differences from the expected outcome, and whether the tool ran without permission."""

    differences: list[str]
    is_unpermitted: bool = False
    is_too_slow: bool = False


def has_reported(case: Case, proxy: Proxy) -> bool:
    """Whether the expected report, or the call in which a report fails, has arrived."""
    report = case.expected("report")
    return (report is None or report in proxy.reports) and (case.step != "report" or proxy.count("report") > 0)


async def run_case(shared: Session, case: Case, language: str) -> Result:
    reference = uuid.uuid4().hex
    world = shared.worlds[case.get("tenant", "main")]
    older = await prior_answer(shared, case, language, reference)
    faults = []
    if case.fault and case.step:
        faults.append(Fault(case.step, case.fault, case.get("times", 1), case.get("retry_after")))
    proxy = shared.proxy(faults, reference, older)
    url = await proxy.start()
    if case.get("port") == "closed":
        proxy.close()
    order = order_of(shared, case, url, world, reference)
    driver = await shared.driver(language, case.get("clock", 0))
    people = asyncio.create_task(people_act(shared, case, proxy, world)) if case.people else None
    began = time.monotonic()
    answer = await driver.run(order)
    seconds = time.monotonic() - began
    acted = None
    if people and (people.done() or case.people == "stop"):
        acted = await people
    elif people:
        people.cancel()
    # The library reports in the background.
    until = time.monotonic() + REPORT_SECONDS
    while not has_reported(case, proxy) and time.monotonic() < until:
        await asyncio.sleep(0.02)
    starts, finished = read_file(order["file"])
    ended = read_times(order["file"], "ended")
    outcome = Outcome(answer, starts, finished, seconds, ended[0] - acted if ended and acted else None)
    proxy.close()
    found = list(differences(case, outcome, proxy))
    return Result(found, is_unpermitted(starts, [proxy]), bool(found) and is_too_slow(case, outcome, proxy))


@dataclass
class Tally:
    runs: Counter[str] = field(default_factory=Counter)
    slow: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    unpermitted: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def add(self, case: Case, result: Result) -> None:
        (self.slow if result.is_too_slow else self.runs)[case.name] += 1
        self.unpermitted[case.name] += result.is_unpermitted
        if result.differences and not result.is_too_slow:
            self.failures[case.name] += 1
            self.examples.setdefault(case.name, result.differences)


async def run_language(shared: Session, language: str, chosen: list[Case], options: argparse.Namespace) -> Tally:
    tally, slots, serial = Tally(), asyncio.Semaphore(options.parallel), asyncio.Lock()
    ends = time.monotonic() + options.minutes * 60

    async def once(case: Case) -> Result:
        try:
            return await asyncio.wait_for(run_case(shared, case, language), CASE_SECONDS)
        except Exception as error:
            return Result([f"{type(error).__name__}: {error}"], is_too_slow=isinstance(error, TooSlow))

    async def one(case: Case) -> None:
        for _ in range(ATTEMPTS):
            async with slots:
                if time.monotonic() > ends:
                    return
                if case.get("serial"):
                    async with serial:
                        result = await once(case)
                else:
                    result = await once(case)
            tally.add(case, result)
            if not result.is_too_slow:
                return
        tally.failures[case.name] += 1
        tally.examples.setdefault(case.name, ["the machine is too slow", *result.differences])

    await asyncio.gather(*(one(case) for case in repeated(chosen, options.repeat)))
    return tally


def show(language: str, chosen: list[Case], tally: Tally) -> bool:
    """Prints the counts, and returns whether every case went as expected."""
    counters = (tally.runs, tally.slow, tally.failures, tally.unpermitted)
    rows: dict[tuple[str, str], list[int]] = {}
    for case in chosen:
        row = rows.setdefault((case.fault or "none", case.step or ""), [0] * len(counters))
        for at, counter in enumerate(counters):
            row[at] += counter[case.name]
    titles = ("runs", "too slow", "other outcome", "ran without permission")
    print(f"\n{language}\n  {'fault':26}{'step':8}" + "".join(f"{title:>24}" for title in titles))
    for (fault, step), row in sorted(rows.items()):
        print(f"  {fault:26}{step:8}" + "".join(f"{count:>24}" for count in row))
    for name, example in tally.examples.items():
        print(f"FAILED {language}: {name} ({tally.failures[name]} of {tally.runs[name]})")
        for line in example:
            print(f"    {line[:300]}")
    counts = [f"{sum(counter.values())} {title}" for title, counter in zip(titles, counters, strict=True)]
    print(f"{language}: {', '.join(counts)}", flush=True)
    return not tally.failures and not sum(tally.unpermitted.values())


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--language", action="append", choices=list(LANGUAGES))
    parser.add_argument("--only", default="", help="a regular expression that names of cases match")
    parser.add_argument("--repeat", type=int, default=1, help="how often each fault happens at each step, at least")
    parser.add_argument("--minutes", type=float, default=60, help="no case begins after this time")
    parser.add_argument("--parallel", type=int, default=8)
    parser.add_argument("--holds", type=int, default=0, help="how often to run the stories of held calls")
    parser.add_argument("--digests", type=int, default=0, help="how many digests of arguments the service confirms")
    options = parser.parse_args()
    chosen = [case for case in cases() if re.search(options.only, case.name)]
    good = True
    with tempfile.TemporaryDirectory() as folder:
        shared = await asyncio.to_thread(prepare, Path(folder))
        for language in options.language or ["python", "typescript"]:
            if chosen:
                tally = await run_language(shared, language, chosen, options)
                good &= show(language, chosen, tally)
            if options.digests:
                good &= await digests.compare(shared, language, options.digests)
            if options.holds:
                good &= await holds.tell(shared, language, options.holds)
        for driver in shared.drivers.values():
            await (await driver).stop()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
