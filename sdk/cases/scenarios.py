"""The table of scenarios: reads it, and compares what happened with what it expects."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proxy import Proxy

TABLE = json.loads((Path(__file__).parent / "scenarios.json").read_text())
# The call that has this step.
CALL_OF_STEP = {"ask": "small", "again": "large", "wait": "large", "watch": "small", "report": "small"}


@dataclass
class Case:
    """One scenario with one fault at one step, or without."""

    name: str
    row: dict[str, Any]
    step: str | None = None
    fault: str | None = None

    def get(self, name: str, default: Any = None) -> Any:
        return self.row.get(name, default)

    @property
    def call(self) -> dict[str, Any]:
        return TABLE["calls"][self.row.get("call") or CALL_OF_STEP[self.step or "ask"]]

    @property
    def people(self) -> str | None:
        needs_approval = self.step in ("again", "wait")
        return self.row.get("people", "approve" if needs_approval else None)

    @property
    def wait(self) -> float:
        return self.row.get("wait", 30 if self.people else 0)

    def expected(self, name: str) -> Any:
        value = self.row["expect"].get(name)
        return value[self.step] if isinstance(value, dict) and self.step in value else value


def cases() -> Iterator[Case]:
    for row in TABLE["scenarios"]:
        if "faults" not in row:
            yield Case(row["name"], row)
            continue
        for step in row["steps"]:
            for fault in row["faults"]:
                yield Case(f"{row['name']}: {fault} at {step}", row, step, fault)


def repeated(chosen: list[Case], count: int) -> list[Case]:
    """Returns the cases so often that each fault happens at each step at least `count` times."""
    kinds = Counter((case.fault, case.step) for case in chosen)
    times = {kind: -(-count // cases_of_kind) for kind, cases_of_kind in kinds.items()}
    most = max(times.values(), default=0)
    return [case for number in range(most) for case in chosen if number < times[case.fault, case.step]]


@dataclass
class Outcome:
    """What happened. `starts` has the monotonic times at which the tool's body began."""

    answer: dict[str, Any]
    starts: list[float]
    finished: int
    seconds: float


def trail(proxy: Proxy) -> str:
    """Returns the calls in their order, for messages."""
    parts = ([call.step, call.fault, call.decision, call.outcome, call.note] for call in proxy.calls)
    return "; ".join(" ".join(filter(None, words)) for words in parts)


def differences(case: Case, outcome: Outcome, proxy: Proxy) -> Iterator[str]:
    """Yields each difference from what the case expects."""
    asked = [call for call in proxy.calls if call.step in ("ask", "again")]
    actual = {
        "outcome": outcome.answer["outcome"],
        "code": outcome.answer.get("code"),
        "ran": len(outcome.starts),
        "finished": outcome.finished,
        "decisions": len(proxy.decisions),
    }
    for name, value in actual.items():
        expected = case.expected(name)
        if expected is not None and value != expected and not (isinstance(expected, list) and value in expected):
            yield f"{name} is {value}, not {expected}: {outcome.answer}"
    for step, count in (case.expected("calls") or {}).items():
        if proxy.count(step) != count:
            yield f"{proxy.count(step)} calls to {step}, not {count}"
    if case.expected("once") and (count := proxy.count(case.step or "ask")) != 1:
        yield f"asked {count} times: {trail(proxy)}"
    if (report := case.expected("report")) and report not in (reports := proxy.reports):
        yield f"the reports are {reports}, not {report}: {trail(proxy)}"
    if len(set(proxy.reports)) > 1:
        yield f"the reports differ: {proxy.reports}"
    if (seconds := case.expected("seconds")) and outcome.seconds > seconds:
        yield f"it took {outcome.seconds:.1f} seconds"
    for step in ("ask", "again"):
        keys = {call.key for call in asked if call.step == step}
        if None in keys or len(keys) > 1:
            yield f"the attempts to {step} have {len(keys)} keys: {trail(proxy)}"
    if pause := case.expected("pause"):
        times = [call.began for call in asked if call.step == case.step]
        if len(times) < 2 or times[1] - times[0] < pause:
            yield f"it did not pause for {pause} s: {trail(proxy)}"


def is_too_slow(case: Case, outcome: Outcome, proxy: Proxy) -> bool:
    """Whether the machine was too slow for the deadline of the call, so that the outcome means little."""
    expected, answer = case.expected("outcome"), outcome.answer
    if proxy.was_slow:
        return True
    if expected == "ran" and answer.get("code") in ("late", "deadline_passed"):
        return True
    if answer["outcome"] == "unavailable" and case.step in ("wait", "again") and not proxy.count(case.step):
        return True  # the first question had no answer in time, and the step of the fault was not reached
    return answer["outcome"] == "unavailable" != expected and "unavailable" not in expected


def is_unpermitted(outcome: Outcome, proxy: Proxy) -> bool:
    """Whether the tool's body ran before a genuine permission had arrived, or twice."""
    permits = [call.at for call in proxy.calls if call.permits]
    late = [start for start in outcome.starts if not any(at <= start for at in permits)]
    return bool(late) or len(outcome.starts) > 1
