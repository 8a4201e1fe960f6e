"""Guards a function: it runs only with a permission for exactly its arguments."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, Union, cast

from .errors import Denied, Held
from .permit import Terms, log
from .question import Question
from .values import freeze_members, redact

if TYPE_CHECKING:
    from .authority import Base

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

#: The arguments of a call, by their names.
Arguments = Mapping[str, Any]
#: A fixed value, or a function of the arguments.
Mapped = Union[Any, Callable[[Arguments], Any]]


class Guarded(Protocol[P, R_co]):
    """A guarded function."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...

    def resume(self, held: Held, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Runs a call that was held, with the same arguments, possibly in another process."""


@dataclass(frozen=True)
class CallMapping:
    """How the arguments of a call become a question."""

    action: str
    members: Mapping[str, Mapped]
    redact: Collection[str]
    exclude: Collection[str]
    redact_key: bytes | None

    def question(self, arguments: Arguments) -> Question:
        """Builds the question from frozen arguments."""
        members = {name: value(arguments) if callable(value) else value for name, value in self.members.items()}
        context = dict(members.pop("context", None) or {})
        for name in ("amount", "currency"):
            if (value := members.pop(name, None)) is not None:
                context[name] = value
        if "arguments" in context:
            raise ValueError("the context must not have a member `arguments`: it has the arguments of the function")
        context["arguments"] = self.asked(arguments)
        return Question(self.action, context=context, **members)

    def asked(self, arguments: Arguments) -> dict[str, Any]:
        """Returns the arguments as the question has them."""
        frozen = freeze_members(
            {name: value for name, value in arguments.items() if name not in self.exclude}, "arguments"
        )
        return redact(frozen, self.redact, self.redact_key) if self.redact_key else frozen


class BoundCall:
    """One call of a guarded function. Its arguments are copied before the question is made."""

    def __init__(self, function: Callable[..., Any], mapping: CallMapping, args: Any, kwargs: Any) -> None:
        self._mapping = mapping
        self._bound = inspect.signature(function).bind(*args, **kwargs)
        self._bound.apply_defaults()
        for name, value in self._bound.arguments.items():
            if name not in mapping.exclude:
                self._bound.arguments[name] = copy.deepcopy(value)
        self.question = mapping.question(self._named())
        self._asked = self.question.context["arguments"]

    def _named(self) -> dict[str, Any]:
        """Returns the arguments by name, those of ``**kwargs`` by their own names."""
        named = dict(self._bound.arguments)
        for name, parameter in self._bound.signature.parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                rest = named.pop(name)
                if meeting := sorted(named.keys() & rest.keys()):
                    raise ValueError(f"two arguments have the name {meeting[0]}")
                named.update(rest)
        return named

    def run(self, function: Callable[..., Any]) -> Any:
        """Calls the function with the arguments that were asked for."""
        if self._mapping.asked(self._named()) != self._asked:
            raise Denied("arguments_changed", "the arguments were changed after the question")
        return function(*self._bound.args, **self._bound.kwargs)


def bind(function: Callable[..., Any], mapping: CallMapping, args: Any, kwargs: Any) -> BoundCall:
    """Binds a call.

    :raises TypeError: The function does not take these arguments.
    :raises Denied: ``invalid_question``: the arguments can't be asked for, or a mapping failed.
    """
    inspect.signature(function).bind(*args, **kwargs)
    try:
        return BoundCall(function, mapping, args, kwargs)
    except Exception as error:
        text = f"the question for {mapping.action} can't be made: {type(error).__name__}: {error}"
        raise Denied("invalid_question", text) from error


def guarded(base: Base, function: Callable[P, R], mapping: CallMapping, terms: Terms) -> Guarded[P, R]:
    """Wraps a function."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError("a generator can't be guarded: its body runs after the call")
    _check_names(function, mapping)
    if inspect.iscoroutinefunction(function):
        return cast("Guarded[P, R]", _guard_async(base, function, mapping, terms))

    def call(held: Held | None, args: Any, kwargs: Any) -> Any:
        try:
            bound = bind(function, mapping, args, kwargs)
        except Denied as error:
            if not terms.shadow:
                raise
            log.warning("shadow mode: %s would not have run: %s", mapping.action, error)
            return function(*args, **kwargs)
        with base.scope(bound.question, _resumed(base, terms, bound, held)) as permit:
            permit.result = bound.run(function)
            _check_has_run(mapping.action, permit.result)
        return permit.result

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return call(None, args, kwargs)

    setattr(wrapper, "resume", lambda held, *args, **kwargs: call(held, args, kwargs))
    return cast("Guarded[P, R]", wrapper)


def _guard_async(base: Base, function: Callable[..., Any], mapping: CallMapping, terms: Terms) -> Any:
    async def call(held: Held | None, args: Any, kwargs: Any) -> Any:
        try:
            bound = bind(function, mapping, args, kwargs)
        except Denied as error:
            if not terms.shadow:
                raise
            log.warning("shadow mode: %s would not have run: %s", mapping.action, error)
            return await function(*args, **kwargs)
        async with base.async_scope(bound.question, _resumed(base, terms, bound, held)) as permit:
            permit.result = await bound.run(function)
            _check_has_run(mapping.action, permit.result)
        return permit.result

    @functools.wraps(function)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        return await call(None, args, kwargs)

    async def resume(held: Held, *args: Any, **kwargs: Any) -> Any:
        return await call(held, args, kwargs)

    setattr(wrapper, "resume", resume)
    return wrapper


def _check_has_run(action: str, result: Any) -> None:
    """Checks that no part of the function runs after its scope."""
    if inspect.isawaitable(result) or inspect.isgenerator(result) or inspect.isasyncgen(result):
        getattr(result, "close", lambda: None)()
        raise TypeError(f"{action}: the function returned an awaitable or a generator, which would run without a permission")


def _resumed(base: Base, terms: Terms, bound: BoundCall, held: Held | None) -> Terms:
    """Returns the terms of a call that resumes a held question."""
    if held is None:
        return terms
    completed = base.core.complete(bound.question, frozenset(held.question.supported_obligations or ()))
    if completed.digest != held.digest:
        raise Denied("arguments_changed", "the arguments differ from the held question")
    return terms.resuming(held)


def _check_names(function: Callable[..., Any], mapping: CallMapping) -> None:
    """Checks that the named arguments exist: a misspelt name must not disclose a value."""
    parameters = inspect.signature(function).parameters
    if mapping.redact and mapping.redact_key is None:
        raise ValueError("redact needs the authority's redact_key")
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    redacted = {name[1:].partition("/")[0] if name.startswith("/") else name for name in mapping.redact}
    if unknown := sorted({*redacted, *mapping.exclude} - parameters.keys()):
        raise TypeError(f"the function has no argument {unknown[0]}")
