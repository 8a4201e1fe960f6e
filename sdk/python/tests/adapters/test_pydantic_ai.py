"""The capability for Pydantic AI, with a scripted model and a real service."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent as Model_
from pydantic_ai import DeferredToolRequests, DeferredToolResults, TextOutput, ToolApproved
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering, Hooks, NativeTool
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.native_tools import WebSearchTool
from pydantic_ai.toolsets import ExternalToolset, FunctionToolset, WrapperToolset
from pydantic_ai.tools import ToolDefinition
from world import Agent, free_port, wait_for

from agent_authority import AsyncAuthority, Authority, Denied, Held
from agent_authority.adapters import Tool
from agent_authority.adapters.pydantic_ai import METADATA, AuthorityCapability

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


def script(*calls: tuple[str, dict[str, Any]]) -> FunctionModel:
    """A model that makes these calls, one after the other, and then ends."""

    def answer(messages: list[Any], info: AgentInfo) -> ModelResponse:
        given = sum(isinstance(message, ModelResponse) for message in messages)
        if given >= len(calls):
            return ModelResponse([TextPart("done")])
        name, arguments = calls[given]
        return ModelResponse([ToolCallPart(name, arguments, tool_call_id=f"call-{given}")])

    return FunctionModel(answer)


def payment(amount: float, country: str = "DE") -> tuple[str, dict[str, Any]]:
    return "pay", {"amount": amount, "country": country}


@pytest.fixture
def paid(tmp_path: Path) -> Path:
    """The file to which the tool ``pay`` writes."""
    return tmp_path / "paid"


@pytest.fixture
def pay(paid: Path) -> Any:
    def pay(amount: float, country: str) -> str:
        with paid.open("a") as file:
            file.write(f"{amount} {country}\n")
        return f"paid {amount}"

    return pay


@pytest.fixture(params=[Authority, AsyncAuthority], ids=["sync", "async"])
def authority(agent: Agent, request: pytest.FixtureRequest) -> Iterator[Any]:
    made = request.param(**agent.options())
    yield made
    made.flush()


def guarded(authority: Any, *calls: tuple[str, dict[str, Any]], tools: Any = (), **options: Any) -> Any:
    guard = AuthorityCapability(authority, tools={"pay": PAY}, **options)
    return Model_(script(*calls), tools=tools, capabilities=[guard])


def last_result(run: Any) -> Any:
    parts = [part for message in run.all_messages() for part in message.parts if isinstance(part, ToolReturnPart)]
    return parts[-1].content


def test_a_permitted_tool_runs_and_is_reported(authority: Any, agent: Agent, pay: Any, paid: Path) -> None:
    run = guarded(authority, payment(1200.5), tools=[pay]).run_sync("go")
    assert last_result(run) == "paid 1200.5" and run.output == "done"
    assert paid.read_text() == "1200.5 DE\n" and agent.outcomes(1) == ["executed"]


def test_a_denied_tool_does_not_run(authority: Any, pay: Any, paid: Path) -> None:
    run = guarded(authority, payment(1, "US"), tools=[pay]).run_sync("go")
    assert "jurisdiction_unsupported" in last_result(run) and not paid.exists()


def test_a_streamed_run_is_guarded(authority: Any, pay: Any, paid: Path) -> None:
    async def stream() -> Any:
        async with guarded(authority, payment(1, "US"), tools=[pay]).iter("go") as run:
            async for _ in run:
                pass
        return run.result

    assert "jurisdiction_unsupported" in last_result(asyncio.run(stream())) and not paid.exists()


def test_a_held_tool_that_does_not_wait_is_refused_with_the_link(authority: Any, pay: Any, paid: Path) -> None:
    run = guarded(authority, payment(20000), tools=[pay]).run_sync("go")
    assert "/receipts/svc:decision:" in last_result(run) and not paid.exists()


@pytest.mark.parametrize("act", ["approve", "decline"])
def test_a_held_tool_waits_for_people(authority: Any, agent: Agent, pay: Any, paid: Path, act: str) -> None:
    person = threading.Thread(target=lambda: agent.decide(agent.pending(), act))
    person.start()
    run = guarded(authority, payment(20000), tools=[pay], wait=30).run_sync("go")
    person.join()
    assert paid.exists() == (act == "approve"), last_result(run)


@pytest.mark.parametrize("act", ["approve", "decline"])
def test_a_paused_run_goes_on_with_the_held_question(
    authority: Any, agent: Agent, pay: Any, paid: Path, act: str
) -> None:
    def model() -> Any:  # as in another process
        guard = AuthorityCapability(authority, tools={"pay": PAY}, pause=True)
        return Model_(
            script(payment(20000)), tools=[pay], capabilities=[guard], output_type=[str, DeferredToolRequests]
        )

    def go_on(history: bytes, requests: DeferredToolRequests) -> Any:
        results = requests.build_results(approve_all=True, metadata=requests.metadata)
        messages = ModelMessagesTypeAdapter.validate_json(history)
        return model().run_sync(message_history=messages, deferred_tool_results=results)

    run = model().run_sync("go")
    held = Held.from_json(run.output.metadata["call-0"][METADATA])
    assert held.approval_id == agent.pending() and not paid.exists()
    # Going on too early sends no new question.
    run = go_on(run.all_messages_json(), run.output)
    assert len(agent.decisions()) == 1 and len(agent.approvals()) == 1 and not paid.exists()
    agent.decide(agent.pending(), act)
    run = go_on(run.all_messages_json(), run.output)
    assert run.output == "done" and len(agent.approvals()) == 1
    assert paid.exists() == (act == "approve"), last_result(run)
    if act == "approve":
        assert agent.outcomes(1) == ["executed"] and len(agent.decisions()) == 2


def test_an_approval_in_the_framework_alone_permits_nothing(
    authority: Any, agent: Agent, pay: Any, paid: Path
) -> None:
    guard = AuthorityCapability(authority, tools={"pay": PAY}, pause=True)
    model: Any = Model_(
        script(payment(20000)), tools=[pay], capabilities=[guard], output_type=[str, DeferredToolRequests]
    )
    run = model.run_sync("go")
    for results in (
        DeferredToolResults(approvals={"call-0": True}),
        DeferredToolResults(approvals={"call-0": True}, metadata=run.output.metadata),
    ):
        again = model.run_sync(message_history=run.all_messages(), deferred_tool_results=results)
        assert isinstance(again.output, DeferredToolRequests) and not paid.exists()
    assert len(agent.approvals()) == 1
    # The arguments differ from the approved question.
    agent.decide(agent.pending(), "approve")
    results = DeferredToolResults(
        approvals={"call-0": ToolApproved(override_args=payment(30000)[1])}, metadata=run.output.metadata
    )
    changed = model.run_sync(message_history=run.all_messages(), deferred_tool_results=results)
    assert "arguments_changed" in last_result(changed) and not paid.exists()


def test_a_stop_ends_the_tool(authority: Any, agent: Agent, tmp_path: Path) -> None:
    begun, ended = tmp_path / "begun", tmp_path / "ended"

    async def pay(amount: float, country: str) -> str:
        begun.touch()
        await asyncio.sleep(20)
        ended.touch()
        return "paid"

    def person() -> None:
        wait_for(begun.exists, 10, "the tool does not begin")
        time.sleep(0.3)
        agent.stop()

    stopping = threading.Thread(target=person)
    stopping.start()
    started = time.monotonic()
    run = guarded(authority, payment(1), tools=[pay], watch=True).run_sync("go")
    stopping.join()
    assert "stopped" in last_result(run) and not ended.exists() and time.monotonic() - started < 10
    assert agent.outcomes(1) == ["abandoned"]


def test_an_exception_of_the_tool_is_reported_and_not_changed(authority: Any, agent: Agent) -> None:
    def pay(amount: float, country: str) -> str:
        raise ZeroDivisionError("of the tool")

    with pytest.raises(ZeroDivisionError, match="of the tool"):
        guarded(authority, payment(1), tools=[pay]).run_sync("go")
    (report,) = agent.reports(1)
    assert (report["outcome"], report["detail"]) == ("failed", "ZeroDivisionError")


def test_nothing_runs_while_the_service_is_down(agent: Agent, pay: Any, paid: Path) -> None:
    down = Authority(**{**agent.options(), "url": f"http://127.0.0.1:{free_port()}", "timeout": 0.3})
    run = guarded(down, payment(1), tools=[pay]).run_sync("go")
    assert "no permission" in last_result(run) and not paid.exists()


# Door 2: tools that run at the provider, or outside of the agent


def test_provider_tools_are_refused_before_the_model_is_called(authority: Any, pay: Any) -> None:
    def model(guard: AuthorityCapability, **options: Any) -> Any:
        capabilities = [NativeTool(WebSearchTool()), guard]
        return Model_(script(), tools=[pay], capabilities=capabilities, **options)

    with pytest.raises(Denied, match="web_search"):
        model(AuthorityCapability(authority)).run_sync("go")
    settings: Any = {"openai_native_tools": [{"type": "code_interpreter"}]}
    with pytest.raises(Denied, match="openai_native_tools"):
        guarded(authority).run_sync("go", model_settings=settings)
    external = ExternalToolset([ToolDefinition(name="elsewhere", parameters_json_schema={"type": "object"})])
    with pytest.raises(Denied, match="elsewhere"):
        guarded(authority).run_sync("go", toolsets=[external], output_type=[str, DeferredToolRequests])
    assert guarded(authority, unguarded=["elsewhere"]).run_sync(
        "go", toolsets=[external], output_type=[str, DeferredToolRequests]
    ).output == "done"  # fmt: skip


def test_output_functions_are_refused(authority: Any, paid: Path) -> None:
    def transfer(words: str) -> str:
        paid.touch()
        return words

    with pytest.raises(Denied, match="transfer"):
        guarded(authority).run_sync("go", output_type=TextOutput(transfer))
    assert not paid.exists()
    assert guarded(authority, unguarded=["transfer"]).run_sync("go", output_type=TextOutput(transfer)).output == "done"


# Door 3: tools that are added later, agents as tools


def test_a_tool_added_later_is_guarded(authority: Any, pay: Any, paid: Path) -> None:
    model = guarded(authority, payment(1, "US"))
    run = model.run_sync("go", toolsets=[FunctionToolset([pay])])
    assert "jurisdiction_unsupported" in last_result(run) and not paid.exists()
    model.tool_plain(pay)
    assert "jurisdiction_unsupported" in last_result(model.run_sync("go")) and not paid.exists()


def test_an_agent_within_a_tool_is_guarded(authority: Any, pay: Any, paid: Path) -> None:
    results = []

    def helper(country: str) -> Any:
        return Model_(script(payment(1, country)), tools=[pay])

    async def ask_helper(country: str) -> str:
        results.append(last_result(await helper(country).run("go")))
        return "asked"

    for country in ("US", "DE"):
        guarded(authority, ("ask_helper", {"country": country}), tools=[ask_helper]).run_sync("go")
    assert "jurisdiction_unsupported" in results[0] and results[1] == "paid 1.0"
    assert paid.read_text() == "1.0 DE\n"
    assert last_result(helper("DE").run_sync("outside of a tool")) == "paid 1.0"


# Door 4: a hook after ours changes the call


def test_hooks_come_before_the_question(authority: Any, agent: Agent, pay: Any, paid: Path) -> None:
    hooks: Hooks[Any] = Hooks()

    @hooks.on.before_tool_execute
    async def change(ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
        return {**args, "amount": 60000.0}

    guard = AuthorityCapability(authority, tools={"pay": PAY})
    for capabilities in ([guard, hooks], [hooks, guard]):
        run = Model_(script(payment(1)), tools=[pay], capabilities=capabilities).run_sync("go")
        assert "denied" in last_result(run) and not paid.exists()


def test_a_later_capability_cannot_change_the_arguments(authority: Any, pay: Any, paid: Path) -> None:
    class Changing(WrapperToolset[Any]):
        async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
            return await super().call_tool(name, {**tool_args, "amount": 9000.0}, ctx, tool)

    class Changes(AbstractCapability[Any]):
        def get_ordering(self) -> CapabilityOrdering:
            return CapabilityOrdering(position="innermost")

        def get_wrapper_toolset(self, toolset: Any) -> Any:
            return Changing(toolset)

    guard = AuthorityCapability(authority, tools={"pay": PAY})
    with pytest.raises(Denied, match="Changing"):
        Model_(script(payment(1)), tools=[pay], capabilities=[guard, Changes()]).run_sync("go")
    assert not paid.exists()
    run = Model_(script(payment(1)), tools=[pay], capabilities=[Changes(), guard]).run_sync("go")
    assert last_result(run) == "paid 9000.0"


# Door 5: an exception of ours is a refusal


@pytest.mark.parametrize(
    "broken",
    BROKEN,
    ids=["mapping", "action", "type"],
)
def test_an_exception_in_a_mapping_is_a_refusal(authority: Any, pay: Any, paid: Path, broken: Tool) -> None:
    guard = AuthorityCapability(authority, tools={"pay": broken})
    run = Model_(script(payment(1)), tools=[pay], capabilities=[guard]).run_sync("go")
    assert "did not run" in last_result(run) and not paid.exists()


def test_an_exception_in_the_adapter_is_a_refusal(
    authority: Any, pay: Any, paid: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard = AuthorityCapability(authority, tools={"pay": PAY})

    def breaks(*_: Any, **__: Any) -> Any:
        raise RuntimeError("a defect")

    monkeypatch.setattr(guard._calls, "permit", breaks)
    run = Model_(script(payment(1)), tools=[pay], capabilities=[guard]).run_sync("go")
    assert "adapter_failed" in last_result(run) and not paid.exists()
