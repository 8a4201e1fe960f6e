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
# Seconds for a call's question where the fault passes: a busy machine is then no failure.
PATIENT_SECONDS = 15
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
        return self.row.get("wait", 60 if self.people else 0)

    @property
    def deadline(self) -> float:
        return self.row.get("deadline", PATIENT_SECONDS)

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
    # Seconds from people's act until the body ended.
    ended_after: float | None = None

    def exceeded(self, case: Case) -> Iterator[str]:
        """Yields the times that are longer than the case expects."""
        for name, taken in (("seconds", self.seconds), ("stopped_within", self.ended_after)):
            limit = case.expected(name)
            if limit is not None and taken is not None and taken > limit:
                yield f"{name}: it took {taken:.1f} s, not {limit}"


def trail(proxy: Proxy) -> str:
    """Returns the calls in their order, for messages."""
    parts = ([call.step, call.fault, call.decision, call.outcome, call.note] for call in proxy.calls)
    return "; ".join(" ".join(filter(None, words)) for words in parts)


def is_among(value: Any, expected: Any) -> bool:
    return value in expected if isinstance(expected, list) else value == expected


def differences(case: Case, outcome: Outcome, proxy: Proxy) -> Iterator[str]:
    """Yields each difference from what the case expects."""
    yield from violations(case, outcome, proxy)
    if case.step and not proxy.count(case.step):
        yield f"the step {case.step} was not reached: {trail(proxy)}"
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
        if expected is not None and not is_among(value, expected):
            yield f"{name} is {value}, not {expected}: {outcome.answer}"
    for step, count in (case.expected("calls") or {}).items():
        if proxy.count(step) != count:
            yield f"{proxy.count(step)} calls to {step}, not {count}"
    if case.expected("once") and (count := proxy.count(case.step or "ask")) != 1:
        yield f"asked {count} times: {trail(proxy)}"
    if (report := case.expected("report")) and report not in (reports := proxy.reports):
        yield f"the reports are {reports}, not {report}: {trail(proxy)}"
    yield from outcome.exceeded(case)
    if pause := case.expected("pause"):
        times = [call.began for call in asked if call.step == case.step]
        if len(times) < 2 or times[1] - times[0] < pause:
            yield f"it did not pause for {pause} s: {trail(proxy)}"


def violations(case: Case, outcome: Outcome, proxy: Proxy) -> Iterator[str]:
    """Yields the differences that a slow machine never explains."""
    if is_unpermitted(outcome.starts, [proxy]):
        yield f"the tool ran without permission, or twice: {trail(proxy)}"
    answer, expected = outcome.answer, case.expected("outcome")
    if not is_among(answer["outcome"], expected) and not is_inconclusive(answer):
        yield f"the outcome is not {expected}: {answer}: {trail(proxy)}"
    for name, count in (("ran", len(outcome.starts)), ("decisions", len(proxy.decisions))):
        expected = case.expected(name)
        most = max(expected) if isinstance(expected, list) else expected
        if most is not None and count > most:
            yield f"{name} is {count}, more than {most}: {trail(proxy)}"
    if len(set(proxy.reports)) > 1:
        yield f"the reports differ: {proxy.reports}"
    for step in ("ask", "again"):
        keys = {call.key for call in proxy.calls if call.step == step}
        if None in keys or len(keys) > 1:
            yield f"the attempts to {step} have {len(keys)} keys: {trail(proxy)}"


def is_inconclusive(answer: dict[str, Any]) -> bool:
    """Whether there was no answer in time, so that the outcome shows nothing."""
    return answer["outcome"] == "unavailable" or answer.get("code") in ("late", "deadline_passed")


def is_too_slow(case: Case, outcome: Outcome, proxy: Proxy) -> bool:
    """Whether the differences only show that the machine was too slow for the deadline of the call."""
    if any(violations(case, outcome, proxy)):
        return False
    if proxy.was_slow or any(outcome.exceeded(case)):
        return True
    if case.step and not proxy.count(case.step):
        return True
    if not is_inconclusive(outcome.answer):
        return False
    decisions = case.expected("decisions") or 0
    least = min(decisions) if isinstance(decisions, list) else decisions
    # Without the service's decision, the expected failure is no evidence.
    return len(proxy.decisions) < least or not is_among(outcome.answer["outcome"], case.expected("outcome"))


def is_unpermitted(starts: list[float], proxies: list[Proxy]) -> bool:
    """Whether the tool's body ran before a genuine permission had arrived, or twice."""
    permits = [call.at for proxy in proxies for call in proxy.calls if call.permits]
    late = [start for start in starts if not any(at <= start for at in permits)]
    return bool(late) or len(starts) > 1
