"""The client: decides, guards, resumes and verifies."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Mapping
from contextvars import Token
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, overload

from .core import Config, Core, log
from .decision import Decision
from .errors import Denied, Held
from .guard import Arguments, CallMapping, Guarded, Mapped, P, R, guarded
from .http import Canceller, SyncIO, run
from .keys import KeySet
from .permit import _current, After, Before, Permit, Terms, Wait, close_permit, open_permit, seconds, watch_stops
from .question import Question

if TYPE_CHECKING:
    from .aio import AsyncPermitScope
    from .verification import VerifiedPermit

A = TypeVar("A", bound="Base")


class Base:
    """What ``Authority`` and ``AsyncAuthority`` have in common."""

    def __init__(
        self,
        url: str,
        api_key: str,
        *,
        subject: str | None = None,
        purpose: str | None = None,
        jwks: str | os.PathLike[str] | Mapping[str, Any] | None = None,
        timeout: float = 2.0,
        before: Mapping[str, Before] | None = None,
        after: Mapping[str, After] | None = None,
        redact_key: bytes | str | None = None,
        verify_permits: bool = True,
        shadow: bool = False,
        shadow_in_production: bool = False,
        error_messages: bool = False,
    ) -> None:
        """
        :param url: The address of the service, such as ``https://authority.example``.
        :param api_key: A key with ``runtime:write`` and ``runtime:read``, bound to the agent.
        :param subject: The agent, such as ``svc:agent:acme:invoice-bot``.
        :param purpose: The purpose of questions that name none.
        :param jwks: The trusted keys: a JWK set, a file with one, or its ``https`` address; by default
            ``/.well-known/jwks.json`` of the service.
        :param timeout: Seconds for a decision, with all its attempts.
        :param before: Handlers of obligations, by name, that run before the action.
        :param after: Handlers of obligations, by name, that run after it.
        :param redact_key: The key of ``redact``, the same in every process.
        :param verify_permits: Whether to verify record and signature of each permission.
        :param shadow: Runs actions whatever the answer is, and logs the difference. For trials only.
        :param shadow_in_production: Permits ``shadow`` with a production key.
        :param error_messages: Whether reports of failed actions have the message of the exception.
        :raises ValueError: A setting is not valid.
        """
        if not api_key or not url:
            raise ValueError("url and api_key are required")
        url = _checked_url("url", url)
        source = f"{url}/.well-known/jwks.json" if jwks is None else jwks
        source = source if isinstance(source, Mapping) else os.fspath(source)
        if isinstance(source, str) and "://" in source:
            _check_keys_address(source)
        if timeout <= 0:
            raise ValueError("timeout must be more than 0 seconds")
        if shadow and not api_key.startswith("svc_sandbox_") and not shadow_in_production:
            raise ValueError("shadow with a production key needs shadow_in_production=True")
        redact_key = redact_key.encode() if isinstance(redact_key, str) else redact_key
        if redact_key is not None and len(redact_key) < 16:
            raise ValueError("redact_key must have at least 16 bytes")
        self.core = Core(
            Config(url, api_key, subject, purpose, source, timeout, verify_permits, shadow, error_messages, redact_key)
        )
        self._before, self._after = dict(before or {}), dict(after or {})
        self._io = SyncIO()
        if not verify_permits:
            log.warning("verify_permits is off: whoever can answer for the service can permit any action")
        if shadow:
            log.warning("shadow mode: actions run whatever the service answers")

    @classmethod
    def from_env(cls: type[A], **options: Any) -> A:
        """Reads AGENT_AUTHORITY_URL, _API_KEY, _SUBJECT and _JWKS (a file or an https address).

        :param options: Other parameters of the class.
        :raises ValueError: A variable is missing or not valid.
        """
        read = {name: os.environ.get(f"AGENT_AUTHORITY_{name.upper()}") or None for name in _FROM_ENV}
        for name in ("url", "api_key"):
            if not read[name] and name not in options:
                raise ValueError(f"the environment variable AGENT_AUTHORITY_{name.upper()} is not set")
        if options.get("jwks") is None:  # it must not remove the keys that the environment names
            options.pop("jwks", None)
        return cls(**{**read, **options})

    def guard(
        self,
        action: str,
        *,
        purpose: Mapped = None,
        context: Mapped = None,
        amount: Mapped = None,
        currency: Mapped = None,
        resource_id: Mapped = None,
        tool_id: str | None = None,
        subject: str | None = None,
        on_behalf_of: Mapped = None,
        delegation_id: str | None = None,
        justification: Mapped = None,
        wait: Wait = None,
        watch: bool = False,
        redact: Collection[str] = (),
        exclude: Collection[str] = (),
        before: Mapping[str, Before] | None = None,
        after: Mapping[str, After] | None = None,
        shadow: bool | None = None,
    ) -> Callable[[Callable[P, R]], Guarded[P, R]]:
        """Guards a function, synchronous or asynchronous: each call asks first, with all its arguments.

        The function gets copies of its arguments, made before the question. ``current_permit()`` returns
        its permit. Members may be functions of the arguments, such as ``lambda a: a["iban"]``.

        :param context: Further facts for policies, such as ``jurisdiction``.
        :param amount: A Decimal, an integer or text; ``currency`` names its currency.
        :param wait: How long a held call waits for people. Then it raises ``Held``.
        :param watch: Watches stop conditions from the start, not only after a second.
        :param redact: Arguments that the question has only as ``{"hmac": …}``.
        :param exclude: Parameters that are not part of the question, such as ``self`` or a session.
        """
        members = {
            "purpose": purpose, "context": context, "amount": amount, "currency": currency,
            "resource_id": resource_id, "tool_id": tool_id, "subject": subject, "on_behalf_of": on_behalf_of,
            "delegation_id": delegation_id, "justification": justification,
        }  # fmt: skip
        given = {name: value for name, value in members.items() if value is not None}
        for names in (redact, exclude):
            if isinstance(names, str):
                raise TypeError("redact and exclude are lists of names")
        mapping = CallMapping(action, given, redact, exclude, self.core.config.redact_key)
        terms = self._terms(wait, watch, before, after, shadow)
        return lambda function: guarded(self, function, mapping, terms)

    def question(self, question: Question) -> Question:
        """Returns the question as it is asked: with the authority's subject, purpose and obligations."""
        return self.core.complete(question, frozenset(self._before) | frozenset(self._after))

    def report(self, decision: Decision, outcome: str, detail: str | None = None) -> None:
        """Reports ``executed``, ``failed`` or ``abandoned``, in the background. A permit does so itself."""
        self.core.report(decision, outcome, detail)

    def flush(self, timeout: float = 30.0) -> bool:
        """Waits until reports are sent; returns whether that was in time."""
        return self.core.background.flush(timeout)

    def scope(self, question: Question, terms: Terms) -> PermitScope:
        """Returns the scope of a question, for synchronous code."""
        return PermitScope(self.core, self._io, self.core.complete(question, terms.handled), terms)

    def async_scope(self, question: Question, terms: Terms) -> AsyncPermitScope:
        """Returns the scope of a question, for asynchronous code."""
        from .aio import AsyncPermitScope, io_of

        return AsyncPermitScope(self.core, io_of(self.core), self.core.complete(question, terms.handled), terms)

    def _terms(
        self,
        wait: Wait,
        watch: bool,
        before: Mapping[str, Before] | None = None,
        after: Mapping[str, After] | None = None,
        shadow: bool | None = None,
        held: Held | None = None,
    ) -> Terms:
        if shadow and not self.core.config.shadow:
            raise ValueError("shadow needs an authority with shadow=True")
        is_shadow = self.core.config.shadow if shadow is None else shadow
        handlers = ({**self._before, **(before or {})}, {**self._after, **(after or {})})
        return Terms(seconds(wait), watch, *handlers, shadow=is_shadow, held=held)

    def _verified(self, keys: KeySet, evidence: Any, question: Question | None, tenant: str | None) -> Any:
        from .evidence import verify_document
        from .verification import verify_permit

        if isinstance(evidence, Decision):
            evidence = evidence.proof()
        if question is not None:
            tenant = tenant or self.question(question).tenant_id
            return verify_permit(evidence, question, keys, tenant)
        return verify_document(evidence, keys)


class Authority(Base):
    """Decides whether actions are permitted. Safe to share between threads."""

    def decide(self, question: Question) -> Decision:
        """Returns the permission for a question. The caller acts before its deadline, and reports.

        :raises Denied: The action is denied.
        :raises Held: The action waits for people.
        :raises Unavailable: There is no usable answer.
        """
        return run(self.core.decide(self._io, self.question(question)))

    def permit(
        self,
        question: Question,
        wait: Wait = None,
        watch: bool = False,
        *,
        before: Mapping[str, Before] | None = None,
        after: Mapping[str, After] | None = None,
        shadow: bool | None = None,
    ) -> PermitScope:
        """Returns a scope, ``with authority.permit(question) as permit:``, in which the action may run.

        Entering the scope decides, waits up to ``wait`` while people decide, and raises what ``decide``
        raises. Leaving it reports the outcome. When the permission ends, ``permit.stopped`` is set.
        """
        return self.scope(question, self._terms(wait, watch, before, after, shadow))

    def resume(self, held: Held, wait: Wait = None, watch: bool = False) -> PermitScope:
        """Returns the scope of a held question, possibly in another process. See ``permit``."""
        return self.scope(held.question, self._terms(wait, watch, held=held))

    @overload
    def verify(self, evidence: Any, question: Question, *, tenant_id: str | None = None) -> VerifiedPermit: ...
    @overload
    def verify(self, evidence: Any) -> str: ...
    def verify(self, evidence: Any, question: Question | None = None, *, tenant_id: str | None = None) -> Any:
        """Verifies evidence against the trusted keys.

        :param evidence: A ``Decision`` or its ``proof()``, with the ``question`` it must be for; or an evidence
            pack, bundle or replay proof: its path, bytes or parsed JSON.
        :param tenant_id: The tenant of a permission; by default that of the question's subject.
        :returns: A ``VerifiedPermit``; for a file the verdict, ``valid``.
        :raises Denied: The permission is not genuine, not for this question, or has ended.
        :raises Invalid: The file is not genuine.
        """
        return self._verified(run(self.core.keyring.keys(self._io)), evidence, question, tenant_id)

    def close(self) -> None:
        """Waits up to 30 s for reports, and closes connections."""
        self.flush()
        self._io.close()
        self.core.background.close()

    def __enter__(self) -> Authority:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class PermitScope:
    """The scope of a permitted action. It can be entered once."""

    def __init__(self, core: Core, io: SyncIO, question: Question, terms: Terms) -> None:
        self._core, self._io, self._question, self._terms = core, io, question, terms
        self._permit: Permit | None = None
        self._token: Token[Permit | None] | None = None
        self._canceller = Canceller()

    def __enter__(self) -> Permit:
        if self._permit is not None:
            raise RuntimeError("a permit can be used once; ask again")
        permit = self._permit = run(open_permit(self._core, self._io, self._question, self._terms))
        self._token = _current.set(permit)
        if permit.decision is not None and not self._terms.shadow:
            threading.Thread(target=self._watch, name="agent-authority-stop", daemon=True).start()
        return permit

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._permit is not None and self._token is not None
        self._canceller.cancel()
        _current.reset(self._token)
        run(close_permit(self._core, self._permit, self._terms, error))

    def _watch(self) -> None:
        over, permit = self._canceller.cancelled, self._permit
        assert permit is not None
        if not self._terms.watch and over.wait(self._core.config.watch_after):
            return
        try:
            io = self._io.ended_by(self._canceller)
            condition = run(watch_stops(self._core, io, permit, over.is_set))
        except Exception as error:
            if not over.is_set():
                log.error("watching stop conditions failed", exc_info=error)
            condition = "authority.unavailable"
        if condition is not None and not over.is_set():
            permit.stop(condition)


_FROM_ENV = ("url", "api_key", "subject", "jwks")


def _checked_url(name: str, text: str) -> str:
    from urllib.parse import urlsplit

    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{name} must be an http or https address, not {text!r}")
    if parts.scheme == "http" and not _is_local(parts.hostname):
        log.warning("%s is not https: others on the network can read the key", name)
    return text.rstrip("/")


def _check_keys_address(text: str) -> None:
    from urllib.parse import urlsplit

    parts = urlsplit(text)
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_local(parts.hostname or "")):
        raise ValueError("keys are only fetched over https; set jwks to a file or an https address")


def _is_local(host: str) -> bool:
    return host in ("localhost", "127.0.0.1", "::1")
