"""Asks the service, waits for people, verifies and reports. Written once, over blocking or asynchronous IO."""

from __future__ import annotations

import dataclasses
import itertools
import json
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .background import Background
from .clock import clock, microseconds
from .decision import Decision
from .errors import Denied, Held, Unavailable
from .http import IO, Answer, Call, ConnectionFailed, StreamRefused, backoff
from .jcs import canonical, parse
from .keyring import Keyring
from .question import Question
from .verification import signing_key_id, unverified, verify_decision

log = logging.getLogger("agent_authority")

#: Obligations without a duty for the caller. They are logged.
BUILT_IN_OBLIGATIONS = frozenset({"audit.emit", "reality.warn", "reality.overridden"})
#: States in which an approval can no longer permit the action.
_ENDED = frozenset({"declined", "expired", "void", "used"})
#: The state of an approval that can't be read now.
_UNKNOWN = "unknown"
_RETRYABLE = frozenset({429, 502, 503, 504})
_POLL = 2.0
#: Seconds without a line after which a stream about an approval is opened again.
_STREAM_SILENCE = 30.0


@dataclass(frozen=True)
class Config:
    """The settings of an authority. ``Authority`` describes them."""

    url: str
    api_key: str = dataclasses.field(repr=False)
    subject: str | None
    purpose: str | None
    #: A file, an address, or the set itself.
    jwks: str | Mapping[str, Any]
    timeout: float
    verify_permits: bool
    shadow: bool
    error_messages: bool
    redact_key: bytes | None = dataclasses.field(repr=False)
    #: Seconds until a hold without an approval request is asked again.
    ask_again: float = 30.0
    #: Seconds without a heartbeat after which a permission counts as stopped.
    heartbeat: float = 30.0
    #: Seconds after which a running scope is watched.
    watch_after: float = 1.0


@dataclass(frozen=True)
class Ask:
    """One logical call: its attempts share the body, the key and the nonce."""

    question: Question
    approval_id: str | None
    call: Call
    nonce: str
    started: float


class Core:
    """The state that the synchronous and the asynchronous authority share."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.background = Background()
        self.keyring = Keyring(config.jwks, config.timeout)

    def call(self, method: str, path: str, body: Any = None, key: str | None = None) -> Call:
        """Builds a call of the service."""
        headers = {"authorization": f"Bearer {self.config.api_key}", "accept": "application/json"}
        if body is not None:
            headers["content-type"] = "application/json"
        if key is not None:
            headers["idempotency-key"] = key
        return Call(method, self.config.url + path, headers, None if body is None else canonical(body))

    def complete(self, question: Question, handled: frozenset[str] = frozenset()) -> Question:
        """Adds the authority's subject and purpose, and the obligations that have a handler."""
        own = {"subject": self.config.subject, "purpose": self.config.purpose, "supported_obligations": handled}
        return question.replace(**{name: value for name, value in own.items() if getattr(question, name) is None})

    # Deciding

    async def decide(self, io: IO, question: Question, approval_id: str | None = None) -> Decision:
        """Returns the permission for a complete question.

        :raises Denied:
        :raises Held:
        :raises Unavailable:
        """
        io.prepare()
        if self.config.verify_permits:
            await self.keyring.keys(io)
        ask = self._ask(question, approval_id)
        answer, attempts = await self._attempt(io, ask)
        if attempts == 1 and "idempotency-replayed" in answer.headers:
            raise Denied("replayed", "the first attempt got the answer to an earlier call")
        return await self.judge(io, ask, answer)

    def _ask(self, question: Question, approval_id: str | None) -> Ask:
        nonce = os.urandom(16).hex()
        body = {**question.to_json(), "client_nonce": nonce, "include_record": True}
        if approval_id is not None:
            body["approval_id"] = approval_id
        try:
            call = self.call("POST", "/api/v1/runtime/evaluate", body, new_key())
        except ValueError as error:
            raise Denied("invalid_question", f"{question.action}: {error}") from None
        # The record is compared with this copy, which a later change of the context does not affect.
        asked = Question.from_json(parse(canonical(question.to_json())))
        return Ask(asked, approval_id, call, nonce, clock())

    async def _attempt(self, io: IO, ask: Ask) -> tuple[Answer, int]:
        """Sends the call until there is an answer; returns it and the number of attempts."""
        ends, sent, problem = ask.started + self.config.timeout, False, "no time was left"
        try:
            for attempt in itertools.count(1):
                if (left := ends - clock()) <= 0:
                    break
                try:
                    answer = await io.send(ask.call, left)
                except ConnectionFailed as error:
                    sent, problem, pause = sent or error.sent, str(error), backoff(attempt)
                else:
                    if answer.status == 200:
                        return answer, attempt
                    if 400 <= answer.status < 500 and not is_retryable(answer):
                        raise refusal(answer)
                    sent, problem = sent or answer.status != 429, error_text(answer)
                    if not is_retryable(answer):
                        break
                    pause = retry_after(answer) or backoff(attempt)
                if pause >= ends - clock():
                    break
                await io.sleep(pause)
        except Denied:
            if sent:  # an earlier attempt may have been permitted
                self._learn(ask)
            raise
        except BaseException:  # such as a cancelled task
            self._learn(ask)
            raise
        if sent:
            self._learn(ask)
        raise Unavailable(f"no answer to {ask.question.action} within {self.config.timeout:g} s: {problem}")

    async def judge(self, io: IO, ask: Ask, answer: Answer) -> Decision:
        """Returns the permission in an answer, verified. Raises any other decision."""
        try:
            decision = Decision.from_json(parse(answer.body))
        except (ValueError, RecursionError) as error:
            self._learn(ask)
            raise Unavailable(f"the answer is malformed: {error}") from None
        if decision.decision == "require_approval":
            raise self._held(ask, decision)
        if decision.decision == "deny":
            raise Denied(decision.reason_code, _denial_text(ask.question, decision), decision)
        if not decision.permits:
            raise Denied("unknown_decision", f"the service answered {decision.decision!r}", decision)
        try:
            decision = await self._with_deadline(io, ask, decision)
        except BaseException:
            self._learn(ask)
            raise
        try:
            _check_terms(ask.question, decision)
        except Denied:
            self.report(decision, "abandoned")
            raise
        return decision

    def _held(self, ask: Ask, decision: Decision) -> Denied | Held:
        """Returns the failure for a held decision."""
        cited = decision.cited_approval
        if ask.approval_id is not None and cited is not None and cited.state in _ENDED:
            # Another call was faster. People must not be asked about this one again.
            if decision.approval_id not in (None, cited.id):
                self._cancel(str(decision.approval_id))
            return Denied(cited.state, f"the approval {cited.id} is {cited.state}", decision)
        return Held(
            decision.approval_id, decision.verify_url, ask.question.digest, decision.eligible, ask.question,
            decision.decision_id, decision.reason_code,
        )  # fmt: skip

    async def _with_deadline(self, io: IO, ask: Ask, decision: Decision) -> Decision:
        """Verifies the permission, and sets its end on the clock of this process."""
        if self.config.verify_permits:
            pack = decision.members.get("evidence_pack") or {}
            key = await self.keyring.find(io, signing_key_id(pack.get("signature")))
            if key is None:
                raise unverified("its key is not among the trusted keys", decision)
            validity = verify_decision(decision, ask.question, ask.nonce, key)
        else:
            try:
                millis = int(decision.decision_id.rpartition(":")[2][:12], 16)
                validity = microseconds(decision.valid_until or "") / 1e6 - millis / 1e3
            except ValueError:
                raise unverified("it has no end", decision) from None
        return dataclasses.replace(decision, deadline=ask.started + validity)

    # Waiting for people

    async def permitted(self, io: IO, question: Question, wait: float, held: Held | None = None) -> Decision:
        """Like ``decide``, but waits up to ``wait`` seconds while people decide. ``held`` resumes a wait."""
        ends, approval_id = clock() + wait, None
        resumed = held is not None
        while True:
            if held is not None:
                approval_id = await self._approved(io, held, ends, resumed)
            try:
                return await self.decide(io, question, approval_id)
            except Held as again:
                if held is not None and again.approval_id not in (None, held.approval_id):
                    await self._check_lost_race(io, held, again)
                held, resumed = again, False

    async def _check_lost_race(self, io: IO, cited: Held, opened: Held) -> None:
        """Raises ``Denied`` if another call used the cited approval while this one was decided."""
        if (state := await self._approval_state(io, cited)) in _ENDED:
            self._cancel(str(opened.approval_id))
            raise Denied(state, f"the approval {cited.approval_id} is {state}")

    async def _approved(self, io: IO, held: Held, ends: float, resumed: bool) -> str | None:
        """Waits until the question can be asked again; returns the approval to cite.

        :raises Held: People have not decided in time.
        :raises Denied: The approval has ended.
        :raises Unavailable: The approval of a resumed question can't be read.
        """
        if held.approval_id is None:
            if not resumed:
                if ends - clock() < self.config.ask_again:
                    raise held
                await io.sleep(self.config.ask_again)
            return None
        state = await self._approval_state(io, held) if resumed else "pending"
        if state == "pending" and held.eligible != "none" and ends > clock():
            log.warning("waiting for approval %s: %s", held.approval_id, held.verify_url)
        while state in ("pending", _UNKNOWN):
            if held.eligible == "none" or ends - clock() <= 0:
                is_lost = resumed and state == _UNKNOWN
                raise Unavailable(f"the approval {held.approval_id} can't be read") if is_lost else held
            state = await self._watch_approval(io, held, ends)
        if state != "approved":
            raise Denied(state, f"the approval {held.approval_id} is {state}")
        return held.approval_id

    async def _watch_approval(self, io: IO, held: Held, ends: float) -> str:
        """Follows the held decision by a stream, or by polling if there is none. Returns the newest state."""
        silence = min(_STREAM_SILENCE, max(ends - clock(), 0.01))
        call = self.call("GET", f"/v1/decisions/{segment(held.decision_id)}:watch")
        try:
            async with io.lines(call, silence) as lines:
                async for line in lines:
                    state = parse(line).get("approval_state")
                    if isinstance(state, str) and state != "pending":
                        return state
                    if clock() >= ends:
                        return "pending"
        except (ConnectionFailed, StreamRefused, ValueError, AttributeError) as error:
            log.debug("the stream of %s ended: %s", held.decision_id, error)
        state = await self._approval_state(io, held)
        if state in ("pending", _UNKNOWN):
            await io.sleep(min(_POLL, max(ends - clock(), 0)))
        return state

    async def _approval_state(self, io: IO, held: Held) -> str:
        call = self.call("GET", f"/v1/approvals/{segment(held.approval_id or '')}")
        try:
            answer = await io.send(call, self.config.timeout)
            if answer.status == 200:
                return _state(answer)
        except (ConnectionFailed, ValueError) as error:
            log.info("the state of %s is unknown: %s", held.approval_id, error)
            return _UNKNOWN
        if answer.status in (401, 403):
            log.warning("waiting needs a key with runtime:read: %s", error_text(answer))
            raise held
        if 400 <= answer.status < 500 and _is_final(answer, "state"):
            raise refusal(answer)
        await io.sleep(min(retry_after(answer) or 0, _STREAM_SILENCE))
        return _UNKNOWN

    # Afterwards

    def report(self, decision: Decision, outcome: str, detail: str | None = None) -> None:
        """Reports an outcome in the background, for up to 30 s."""
        path = f"/v1/decisions/{segment(decision.decision_id)}:report"
        body = {"outcome": outcome} if detail is None else {"outcome": outcome, "detail": detail[:2000]}
        call = self.call("POST", path, body, new_key())

        async def attempt(io: IO, number: int, left: float) -> float | None:
            answer = await io.send(call, left)
            if _is_final(answer, "outcome"):
                return None
            return retry_after(answer) or backoff(number)

        self.background.add(f"the report {outcome} of {decision.decision_id}", attempt)

    def _cancel(self, approval_id: str) -> None:
        """Cancels an approval request in the background."""
        call = self.call("POST", f"/v1/approvals/{segment(approval_id)}/cancel", {}, new_key())

        async def attempt(io: IO, number: int, left: float) -> float | None:
            answer = await io.send(call, left)
            return None if _is_final(answer, "state") else retry_after(answer) or backoff(number)

        self.background.add(f"the cancellation of {approval_id}", attempt)

    def _learn(self, ask: Ask) -> None:
        """Finds out in the background what was decided, and gives a permission back as ``abandoned``."""

        async def attempt(io: IO, number: int, left: float) -> float | None:
            answer = await io.send(ask.call, left)
            if not _is_final(answer, "decision_id"):
                return retry_after(answer) or backoff(number)
            decision = Decision.from_json(parse(answer.body)) if answer.status == 200 else None
            if decision is not None and decision.permits:
                decision = await self._with_deadline(io, ask, decision)
                self.report(decision, "abandoned", "the answer came too late or could not be used")
            return None

        self.background.add(f"the answer to {ask.question.action}", attempt)


def _denial_text(question: Question, decision: Decision) -> str:
    budgets = decision.members.get("exceeded_budgets")
    resets = [str(budget.get("resets_at")) for budget in budgets or [] if isinstance(budget, dict)]
    until = f"; the budget resets at {max(resets)}" if resets else ""
    return f"{question.subject} may not do {question.action}{until}; {decision.verify_url}"


def _check_terms(question: Question, decision: Decision) -> None:
    """Checks that this caller can act under the permission."""
    if decision.tool_id is not None and decision.tool_id != question.tool_id:
        raise Denied("tool_mismatch", f"the permission is only for the tool {decision.tool_id}; name it in tool_id", decision)
    supported = BUILT_IN_OBLIGATIONS.union(question.supported_obligations or ())
    if missing := [name for name in decision.obligations if name not in supported]:
        raise Denied("obligation_unsupported", f"no handler meets the obligation {missing[0]}", decision)
    if clock() >= decision.deadline:
        raise Denied("late", "the permission ended before the action began; ask again", decision)


def _state(answer: Answer) -> str:
    members = parse(answer.body)
    if not isinstance(members, dict) or not isinstance(members.get("state"), str):
        raise ValueError("the approval has no state")
    state: str = members["state"]
    return state


def new_key() -> str:
    """Returns a new Idempotency-Key."""
    import uuid  # these imports take longer than a decision

    return str(uuid.uuid4())


def segment(name: str) -> str:
    """Escapes a name as a segment of a path."""
    from urllib.parse import quote

    return quote(name, safe="")


def retry_after(answer: Answer) -> float | None:
    """Returns the seconds of ``Retry-After``."""
    text = answer.headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() else None


def is_retryable(answer: Answer) -> bool:
    """Whether the same call may succeed later."""
    return answer.status in _RETRYABLE or (answer.status == 409 and _error(answer)[0] == "idempotency_in_progress")


def _is_final(answer: Answer, member: str) -> bool:
    """Whether the service itself answered: with this member, or with a refusal that another attempt gets again."""
    try:
        members = parse(answer.body)
    except (ValueError, RecursionError):
        members = None
    if not isinstance(members, dict) or is_retryable(answer) or answer.status >= 500:
        return False
    if 400 <= answer.status < 500 and "error" in members:
        log.warning("the service refused: %s", error_text(answer))
        return True
    return answer.status == 200 and member in members


def _error(answer: Answer) -> tuple[str, str]:
    """Returns the code and the message of an error."""
    try:
        members = json.loads(answer.body)
        return str(members["error"]), str(members.get("message", ""))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return f"http_{answer.status}", ""


def error_text(answer: Answer) -> str:
    """Describes an error for people."""
    code, message = _error(answer)
    return f"{code}: {message}" if message else f"status {answer.status}, {code}"


def refusal(answer: Answer) -> Denied:
    """The failure for an error of the 4xx range. ``stopped``: the permission under this key has ended."""
    code, message = _error(answer)
    return Denied("stopped" if code == "decision_stopped" else code, message or f"status {answer.status}")
