"""The middleware for LangChain, with a scripted model and a real service."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt
from world import Agent, free_port, wait_for

from agent_authority import Authority, Held
from agent_authority.adapters import Tool
from agent_authority.adapters.langchain import AuthorityMiddleware

PAY = Tool(
    "payment.execute",
    amount=lambda asked: asked["amount"],
    currency="EUR",
    context=lambda asked: {"jurisdiction": asked["country"]},
)
BROKEN = [
    Tool("payment.execute", amount=lambda asked: asked["absent"]),
    Tool("Not An Action"),
    Tool(resource_id=lambda _: 7),
]
THREAD: Any = {"configurable": {"thread_id": "1"}}


class Scripted(BaseChatModel):
    """A model that gives one answer after the other."""

    answers: list[AIMessage]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        given = sum(isinstance(message, AIMessage) for message in messages)
        return ChatResult(generations=[ChatGeneration(message=self.answers[min(given, len(self.answers) - 1)])])


def script(*calls: tuple[str, dict[str, Any]]) -> Scripted:
    """A model that makes these calls, one after the other, and then ends."""
    answers = [
        AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"call-{number}"}])
        for number, (name, arguments) in enumerate(calls)
    ]
    return Scripted(answers=[*answers, AIMessage("done")])


def payment(amount: float, country: str = "DE") -> tuple[str, dict[str, Any]]:
    return "pay", {"amount": amount, "country": country}


@pytest.fixture
def paid(tmp_path: Path) -> Path:
    """The file to which the tool ``pay`` writes."""
    return tmp_path / "paid"


@pytest.fixture
def pay(paid: Path) -> BaseTool:
    @tool
    def pay(amount: float, country: str) -> str:
        """Pays."""
        with paid.open("a") as file:
            file.write(f"{amount} {country}\n")
        return f"paid {amount}"

    return pay


@pytest.fixture
def authority(agent: Agent) -> Iterator[Authority]:
    with Authority(**agent.options()) as authority:
        yield authority


def run(graph: Any, start: Any = None, config: Any = None, is_async: bool = False) -> Any:
    start = start or {"messages": [("user", "go")]}
    return asyncio.run(graph.ainvoke(start, config)) if is_async else graph.invoke(start, config)


def last_result(state: Any) -> ToolMessage:
    return next(message for message in reversed(state["messages"]) if isinstance(message, ToolMessage))


both = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])


@both
def test_a_permitted_tool_runs_and_is_reported(
    authority: Authority, agent: Agent, pay: BaseTool, paid: Path, is_async: bool
) -> None:
    guard = AuthorityMiddleware(authority, tools={"pay": PAY})
    graph = create_agent(script(payment(1200.5)), [pay], middleware=[guard])
    assert last_result(run(graph, is_async=is_async)).content == "paid 1200.5"
    assert paid.read_text() == "1200.5 DE\n"
    assert agent.outcomes(1) == ["executed"]


@both
def test_a_denied_tool_does_not_run(authority: Authority, pay: BaseTool, paid: Path, is_async: bool) -> None:
    graph = create_agent(
        script(payment(100, "US")), [pay], middleware=[AuthorityMiddleware(authority, tools={"pay": PAY})]
    )
    result = last_result(run(graph, is_async=is_async))
    assert result.status == "error" and "jurisdiction_unsupported" in str(result.content)
    assert not paid.exists()


def test_a_streamed_graph_is_guarded(authority: Authority, pay: BaseTool, paid: Path) -> None:
    guard = AuthorityMiddleware(authority, tools={"pay": PAY})
    graph = create_agent(script(payment(1, "US")), [pay], middleware=[guard])
    states = list(graph.stream({"messages": [("user", "go")]}, stream_mode="values"))
    assert "jurisdiction_unsupported" in str(last_result(states[-1]).content) and not paid.exists()


def test_a_held_tool_that_does_not_wait_is_refused_with_the_link(
    authority: Authority, pay: BaseTool, paid: Path
) -> None:
    graph = create_agent(script(payment(20000)), [pay], middleware=[AuthorityMiddleware(authority, tools={"pay": PAY})])
    result = last_result(run(graph))
    assert result.status == "error" and "/receipts/svc:decision:" in str(result.content)
    assert not paid.exists()


@both
@pytest.mark.parametrize("act", ["approve", "decline"])
def test_a_held_tool_waits_for_people(
    authority: Authority, agent: Agent, pay: BaseTool, paid: Path, is_async: bool, act: str
) -> None:
    middleware = AuthorityMiddleware(authority, tools={"pay": PAY}, wait=30)
    graph = create_agent(script(payment(20000)), [pay], middleware=[middleware])
    person = threading.Thread(target=lambda: agent.decide(agent.pending(), act))
    person.start()
    result = last_result(run(graph, is_async=is_async))
    person.join()
    assert result.status == ("success" if act == "approve" else "error"), result
    assert paid.exists() == (act == "approve")


@both
@pytest.mark.parametrize("act", ["approve", "decline"])
def test_an_interrupted_graph_goes_on_with_the_held_question(
    authority: Authority, agent: Agent, pay: BaseTool, paid: Path, is_async: bool, act: str
) -> None:
    saver = InMemorySaver(serde=JsonPlusSerializer())

    def graph() -> Any:  # as in another process
        middleware = AuthorityMiddleware(authority, tools={"pay": PAY}, pause=True)
        return create_agent(script(payment(20000)), [pay], middleware=[middleware], checkpointer=saver)

    (paused,) = run(graph(), config=THREAD, is_async=is_async)["__interrupt__"]
    assert Held.from_json(paused.value["held"]).approval_id == agent.pending()
    # Resuming too early sends no new question.
    (paused,) = run(graph(), Command(resume="early"), THREAD, is_async)["__interrupt__"]
    assert len(agent.decisions()) == 1 and len(agent.approvals()) == 1
    agent.decide(agent.pending(), act)
    result = last_result(run(graph(), Command(resume=True), THREAD, is_async))
    assert result.status == ("success" if act == "approve" else "error"), result
    assert paid.exists() == (act == "approve")
    assert len(agent.approvals()) == 1
    if act == "approve":
        assert paid.read_text() == "20000.0 DE\n"
        assert agent.outcomes(1) == ["executed"] and len(agent.decisions()) == 2


def test_several_held_calls_of_one_turn_go_on(authority: Authority, agent: Agent, pay: BaseTool, paid: Path) -> None:
    calls: list[Any] = [
        {"name": "pay", "args": {"amount": amount, "country": "DE"}, "id": f"call-{amount}"}
        for amount in (20000, 30000)
    ]
    model = Scripted(answers=[AIMessage("", tool_calls=calls), AIMessage("done")])
    middleware = AuthorityMiddleware(authority, tools={"pay": PAY}, pause=True)
    graph = create_agent(model, [pay], middleware=[middleware], checkpointer=InMemorySaver())
    state = run(graph, config=THREAD)
    saved = graph.get_state(THREAD).interrupts
    assert {paused.id for paused in saved} == {paused.id for paused in state["__interrupt__"]}
    ids = [Held.from_json(paused.value["held"]).approval_id for paused in state["__interrupt__"]]
    assert len(set(ids)) == 2
    for approval_id in ids:
        agent.decide(approval_id, "approve")
    run(graph, Command(resume={paused.id: True for paused in state["__interrupt__"]}), THREAD)
    assert sorted(paid.read_text().splitlines()) == ["20000.0 DE", "30000.0 DE"]


def test_a_resumed_graph_with_another_question_is_refused(
    authority: Authority, agent: Agent, pay: BaseTool, paid: Path
) -> None:
    saver = InMemorySaver()

    def graph(tools: dict[str, Tool]) -> Any:
        middleware = AuthorityMiddleware(authority, tools=tools, pause=True)
        return create_agent(script(payment(20000)), [pay], middleware=[middleware], checkpointer=saver)

    run(graph({"pay": PAY}), config=THREAD)
    agent.decide(agent.pending(), "approve")
    result = last_result(run(graph({}), Command(resume=True), THREAD))
    assert "arguments_changed" in str(result.content) and not paid.exists()


def test_a_tool_that_was_held_cannot_interrupt_itself(authority: Authority, agent: Agent) -> None:
    @tool
    def pay(amount: float, country: str) -> str:
        """Pays."""
        return str(interrupt("really?"))

    middleware = AuthorityMiddleware(authority, tools={"pay": PAY}, pause=True)
    graph = create_agent(script(payment(20000)), [pay], middleware=[middleware], checkpointer=InMemorySaver())
    run(graph, config=THREAD)
    agent.decide(agent.pending(), "approve")
    assert "interrupted" in str(last_result(run(graph, Command(resume="yes"), THREAD)).content)


def test_a_permitted_tool_can_interrupt_the_graph(authority: Authority) -> None:
    @tool
    def pay(amount: float, country: str) -> str:
        """Pays."""
        return str(interrupt("really?"))

    middleware = AuthorityMiddleware(authority, tools={"pay": PAY}, pause=True)
    graph = create_agent(script(payment(1)), [pay], middleware=[middleware], checkpointer=InMemorySaver())
    assert run(graph, config=THREAD)["__interrupt__"][0].value == "really?"
    assert last_result(run(graph, Command(resume="yes"), THREAD)).content == "yes"


@both
def test_a_stop_ends_the_tool(authority: Authority, agent: Agent, tmp_path: Path, is_async: bool) -> None:
    begun, ended = tmp_path / "begun", tmp_path / "ended"

    @tool
    async def apay(amount: float, country: str) -> str:
        """Pays."""
        begun.touch()
        await asyncio.sleep(20)
        ended.touch()
        return "paid"

    @tool
    def pay(amount: float, country: str) -> str:
        """Pays."""
        begun.touch()
        from agent_authority import current_permit

        permit = current_permit()
        assert permit is not None
        if not permit.stopped.wait(20):
            ended.touch()
        return "paid"

    name = "apay" if is_async else "pay"
    middleware = AuthorityMiddleware(authority, tools={name: PAY}, watch=True)
    graph = create_agent(script((name, payment(1)[1])), [apay if is_async else pay], middleware=[middleware])

    def person() -> None:
        wait_for(begun.exists, 10, "the tool does not begin")
        time.sleep(0.3)
        agent.stop()

    stopping = threading.Thread(target=person)
    stopping.start()
    started = time.monotonic()
    result = last_result(run(graph, is_async=is_async))
    stopping.join()
    assert result.status == "error" and "stopped" in str(result.content), result
    assert not ended.exists() and time.monotonic() - started < 10
    assert agent.outcomes(1) == ["abandoned"]


def test_an_exception_of_the_tool_is_reported_and_not_changed(authority: Authority, agent: Agent) -> None:
    @tool
    def pay(amount: float, country: str) -> str:
        """Pays."""
        raise ZeroDivisionError("of the tool")

    graph = create_agent(script(payment(1)), [pay], middleware=[AuthorityMiddleware(authority, tools={"pay": PAY})])
    with pytest.raises(ZeroDivisionError, match="of the tool"):
        run(graph)
    (report,) = agent.reports(1)
    assert (report["outcome"], report["detail"]) == ("failed", "ZeroDivisionError")


@both
def test_nothing_runs_while_the_service_is_down(agent: Agent, pay: BaseTool, paid: Path, is_async: bool) -> None:
    down = Authority(**{**agent.options(), "url": f"http://127.0.0.1:{free_port()}", "timeout": 0.3})
    graph = create_agent(script(payment(1)), [pay], middleware=[AuthorityMiddleware(down, tools={"pay": PAY})])
    result = last_result(run(graph, is_async=is_async))
    assert result.status == "error" and "no permission" in str(result.content)
    assert not paid.exists()


# Door 2: tools that run at the provider


@both
def test_a_provider_tool_is_refused_before_the_model_is_called(
    authority: Authority, pay: BaseTool, is_async: bool
) -> None:
    search = {"type": "web_search_20250305", "name": "web_search"}
    graph = create_agent(script(payment(1)), [pay, search], middleware=[AuthorityMiddleware(authority)])
    with pytest.raises(Exception, match="web_search"):
        run(graph, is_async=is_async)
    open_graph = create_agent(
        script(), [pay, search], middleware=[AuthorityMiddleware(authority, unguarded=["web_search"])]
    )
    assert run(open_graph, is_async=is_async)["messages"][-1].content == "done"


def test_a_provider_tool_in_the_settings_of_the_model_is_refused(authority: Authority, pay: BaseTool) -> None:
    class Settings(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            return handler(request.override(model_settings={"extra_body": {"mcp_servers": [{"url": "x"}]}}))

    graph = create_agent(script(), [pay], middleware=[Settings(), AuthorityMiddleware(authority)])
    with pytest.raises(Exception, match="model setting mcp_servers"):
        run(graph)


# Door 3: tools that are added later, agents as tools


def test_a_tool_added_later_is_guarded(authority: Authority, pay: BaseTool, paid: Path) -> None:
    class Later(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            return handler(request.override(tools=[*request.tools, pay]))

        def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            return handler(request.override(tool=pay))

    middleware: list[Any] = [Later(), AuthorityMiddleware(authority, tools={"pay": PAY})]
    graph = create_agent(script(payment(1, "US")), [], middleware=middleware)
    assert "jurisdiction_unsupported" in str(last_result(run(graph)).content) and not paid.exists()


@both
def test_a_tool_of_an_agent_within_a_tool_is_refused_without_its_own_guard(
    authority: Authority, agent: Agent, pay: BaseTool, paid: Path, is_async: bool
) -> None:
    def helper(*middleware: Any) -> Any:
        return create_agent(script(payment(1)), [pay], middleware=middleware)

    def outer(inner: Any, guard: AuthorityMiddleware) -> Any:
        if is_async:

            @tool
            async def ask_helper(task: str) -> str:
                """Asks the helper."""
                return str(last_result(await inner.ainvoke({"messages": [("user", task)]})).content)
        else:

            @tool
            def ask_helper(task: str) -> str:
                """Asks the helper."""
                return str(last_result(inner.invoke({"messages": [("user", task)]})).content)

        return create_agent(script(("ask_helper", {"task": "pay"})), [ask_helper], middleware=[guard])

    guard = AuthorityMiddleware(authority, tools={"pay": PAY})
    result = last_result(run(outer(helper(), guard), is_async=is_async))
    assert result.status == "error" and "unguarded_tool" in str(result.content) and not paid.exists()
    assert last_result(run(outer(helper(guard), guard), is_async=is_async)).content == "paid 1.0"
    open_guard = AuthorityMiddleware(authority, tools={"pay": PAY}, unguarded=["pay"])
    assert last_result(run(outer(helper(), open_guard), is_async=is_async)).content == "paid 1.0"


def test_a_graph_of_ones_own_is_guarded_by_its_tool_node(
    authority: Authority, agent: Agent, pay: BaseTool, paid: Path
) -> None:
    guard = AuthorityMiddleware(authority, tools={"pay": PAY}, pause=True)
    node = ToolNode([pay], wrap_tool_call=guard.wrap_tool_call, awrap_tool_call=guard.awrap_tool_call)
    graph = StateGraph(MessagesState)
    graph.add_node("tools", node)
    graph.add_edge(START, "tools")
    one, two = ({"name": "pay", "args": payment(20000 + n)[1], "id": f"c{n}"} for n in (1, 2))
    app = graph.compile(checkpointer=InMemorySaver())
    # Two calls of one node can't pause: the other would run twice.
    state = run(app, {"messages": [AIMessage("", tool_calls=[one, two])]}, {"configurable": {"thread_id": "2"}})
    assert [message.status for message in state["messages"][1:]] == ["error", "error"] and not paid.exists()
    state = run(app, {"messages": [AIMessage("", tool_calls=[{**one, "args": payment(30000)[1]}])]}, THREAD)
    held = Held.from_json(state["__interrupt__"][0].value["held"])
    agent.decide(str(held.approval_id), "approve")
    assert last_result(run(app, Command(resume=True), THREAD)).content == "paid 30000.0"


# Door 4: a hook after ours changes the call


@both
def test_a_later_middleware_cannot_change_the_arguments(
    authority: Authority, pay: BaseTool, paid: Path, is_async: bool
) -> None:
    class Changes(AgentMiddleware[Any, Any, Any]):
        def _changed(self, request: Any) -> Any:
            return request.override(tool_call={**request.tool_call, "args": payment(9000)[1]})

        def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            return handler(self._changed(request))

        async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            return await handler(self._changed(request))

    guard = AuthorityMiddleware(authority, tools={"pay": PAY})
    after = create_agent(script(payment(1)), [pay], middleware=[guard, Changes()])
    changed = last_result(run(after, is_async=is_async))
    assert "arguments_changed" in str(changed.content) and not paid.exists()
    before = create_agent(script(payment(1)), [pay], middleware=[Changes(), guard])
    assert last_result(run(before, is_async=is_async)).content == "paid 9000.0"


def test_a_later_middleware_cannot_run_the_tool_twice_or_in_place(
    authority: Authority, pay: BaseTool, paid: Path
) -> None:
    class Twice(AgentMiddleware[Any, Any, Any]):
        def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            handler(request)
            return handler(request)

    class Mutates(AgentMiddleware[Any, Any, Any]):
        def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            request.tool_call["args"]["amount"] = True
            return handler(request)

    guard = AuthorityMiddleware(authority, tools={"pay": PAY})
    twice = last_result(run(create_agent(script(payment(1)), [pay], middleware=[guard, Twice()])))
    assert "arguments_changed" in str(twice.content) and paid.read_text() == "1.0 DE\n"
    mutated = last_result(run(create_agent(script(payment(1)), [pay], middleware=[guard, Mutates()])))
    assert "arguments_changed" in str(mutated.content) and paid.read_text() == "1.0 DE\n"


# Door 5: an exception of ours is a refusal


@both
@pytest.mark.parametrize(
    "broken",
    BROKEN,
    ids=["mapping", "action", "type"],
)
def test_an_exception_in_a_mapping_is_a_refusal(
    authority: Authority, pay: BaseTool, paid: Path, is_async: bool, broken: Tool
) -> None:
    graph = create_agent(script(payment(1)), [pay], middleware=[AuthorityMiddleware(authority, tools={"pay": broken})])
    assert last_result(run(graph, is_async=is_async)).status == "error" and not paid.exists()


@both
def test_an_exception_in_the_adapter_is_a_refusal(
    authority: Authority, pay: BaseTool, paid: Path, is_async: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard = AuthorityMiddleware(authority, tools={"pay": PAY})

    def breaks(*_: Any, **__: Any) -> Any:
        raise RuntimeError("a defect")

    monkeypatch.setattr(guard._calls, "permit", breaks)
    result = last_result(run(create_agent(script(payment(1)), [pay], middleware=[guard]), is_async=is_async))
    assert "adapter_failed" in str(result.content) and not paid.exists()


def test_the_models_words_are_never_subject_purpose_or_delegation() -> None:
    for name in ("purpose", "delegation_id", "tool_id", "action"):
        with pytest.raises(TypeError):
            Tool(**{name: lambda asked: asked["x"]})  # type: ignore[arg-type]
