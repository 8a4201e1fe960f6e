"""The guard for the OpenAI Agents SDK, with a scripted model and a real service."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import (
    Agent,
    CodeInterpreterTool,
    FunctionTool,
    HostedMCPTool,
    ModelSettings,
    RunConfig,
    RunHooks,
    Runner,
    RunState,
    WebSearchTool,
    function_tool,
    handoff,
    set_tracing_disabled,
)
from agents.run import set_default_agent_runner
from agents.testing import ScriptedModel, assistant_message, function_call
from world import Agent as Bot
from world import free_port, wait_for

from agent_authority import AsyncAuthority, Authority, Denied, Held
from agent_authority.adapters import Tool
from agent_authority.adapters.calls import Calls
from agent_authority.adapters.openai_agents import CONTEXT, AuthorityGuard
from agent_authority.adapters.pending import Pending

set_tracing_disabled(True)
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


def script(*calls: tuple[str, dict[str, Any]], ids: str = "call") -> ScriptedModel:
    """A model that makes these calls, one after the other, and then ends."""
    steps: list[Any] = [[function_call(name, asked, call_id=f"{ids}-{n}")] for n, (name, asked) in enumerate(calls)]
    return ScriptedModel([*steps, [assistant_message("done")]])


def payment(amount: float, country: str = "DE") -> tuple[str, dict[str, Any]]:
    return "pay", {"amount": amount, "country": country}


@pytest.fixture
def paid(tmp_path: Path) -> Path:
    """The file to which the tool ``pay`` writes."""
    return tmp_path / "paid"


@pytest.fixture
def pay(paid: Path) -> FunctionTool:
    @function_tool
    def pay(amount: float, country: str) -> str:
        """Pays."""
        with paid.open("a") as file:
            file.write(f"{amount} {country}\n")
        return f"paid {amount}"

    return pay


@pytest.fixture(params=[Authority, AsyncAuthority], ids=["sync", "async"])
def authority(agent: Bot, request: pytest.FixtureRequest) -> Iterator[Any]:
    made = request.param(**agent.options())
    yield made
    made.flush()
    set_default_agent_runner(None)


def installed(authority: Any, **options: Any) -> AuthorityGuard:
    guard = AuthorityGuard(authority, **{"tools": {"pay": PAY}, **options})
    set_default_agent_runner(None)
    guard.install()
    return guard


def run(agent: Any, start: Any = "go", **options: Any) -> Any:
    return asyncio.run(Runner.run(agent, start, **options))


def last_result(result: Any) -> Any:
    return [item.output for item in result.new_items if item.type == "tool_call_output_item"][-1]


def test_a_permitted_tool_runs_and_is_reported(authority: Any, agent: Bot, pay: Any, paid: Path) -> None:
    installed(authority)
    result = run(Agent("a", model=script(payment(1200.5)), tools=[pay]))
    assert last_result(result) == "paid 1200.5" and result.final_output == "done"
    assert paid.read_text() == "1200.5 DE\n" and agent.outcomes(1) == ["executed"]
    assert len(agent.decisions()) == 1


def test_a_denied_tool_does_not_run(authority: Any, pay: Any, paid: Path) -> None:
    installed(authority)
    result = run(Agent("a", model=script(payment(1, "US")), tools=[pay]))
    assert "jurisdiction_unsupported" in last_result(result) and not paid.exists()
    (rejected,) = result.tool_input_guardrail_results
    assert rejected.output.behavior["type"] == "reject_content"


def test_a_streamed_run_is_guarded(authority: Any, pay: Any, paid: Path) -> None:
    installed(authority)

    async def stream() -> Any:
        result = Runner.run_streamed(Agent("a", model=script(payment(1, "US")), tools=[pay]), "go")
        async for _ in result.stream_events():
            pass
        return result

    assert "jurisdiction_unsupported" in last_result(asyncio.run(stream())) and not paid.exists()


def test_a_held_tool_that_does_not_wait_is_refused_with_the_link(authority: Any, pay: Any, paid: Path) -> None:
    installed(authority)
    result = run(Agent("a", model=script(payment(20000)), tools=[pay]))
    assert "/receipts/svc:decision:" in last_result(result) and not paid.exists()


@pytest.mark.parametrize("act", ["approve", "decline"])
def test_a_held_tool_waits_for_people(authority: Any, agent: Bot, pay: Any, paid: Path, act: str) -> None:
    installed(authority, wait=30)
    person = threading.Thread(target=lambda: agent.decide(agent.pending(), act))
    person.start()
    result = run(Agent("a", model=script(payment(20000)), tools=[pay]))
    person.join()
    assert paid.exists() == (act == "approve"), last_result(result)


@pytest.mark.parametrize("act", ["approve", "decline", "approve in the framework alone"])
def test_a_paused_run_goes_on_with_the_held_question(
    authority: Any, agent: Bot, pay: Any, paid: Path, act: str
) -> None:
    def model(*calls: Any) -> Any:  # as in another process
        guard = installed(authority, pause=True)
        return guard.protect(Agent("a", model=script(*calls), tools=[pay]))

    result = run(model(payment(20000)))
    (item,) = result.interruptions
    saved = result.to_state().to_string()
    held = Held.from_json(result.context_wrapper.context[CONTEXT]["call-0"])
    assert held.approval_id == agent.pending() and not paid.exists()
    if act in ("approve", "decline"):
        agent.decide(str(held.approval_id), act)

    async def go_on() -> Any:
        starting = model()
        state = await RunState.from_string(starting, saved)
        for item in state.get_interruptions():
            state.approve(item)
        return await Runner.run(starting, state)

    result = asyncio.run(go_on())
    assert result.final_output == "done" and len(agent.approvals()) == 1
    assert paid.exists() == (act == "approve"), last_result(result)
    assert len(agent.decisions()) == (2 if act == "approve" else 1)
    if act == "approve":
        assert agent.outcomes(1) == ["executed"]


def test_a_permitted_call_is_asked_for_once_though_runs_may_pause(
    authority: Any, agent: Bot, pay: Any, paid: Path
) -> None:
    installed(authority, pause=True)
    assert last_result(run(Agent("a", model=script(payment(1)), tools=[pay]))) == "paid 1.0"
    assert "denied" in last_result(run(Agent("a", model=script(payment(1, "US")), tools=[pay])))
    assert len(agent.decisions()) == 2
    # A run does not pause if its context can't keep the held question.
    result = run(Agent("a", model=script(payment(20000)), tools=[pay]), context=("no", "dict"))
    assert not result.interruptions and "/receipts/" in last_result(result) and len(agent.decisions()) == 3


def test_a_changed_context_does_not_permit_another_call(authority: Any, agent: Bot, pay: Any, paid: Path) -> None:
    guard = installed(authority, pause=True)
    starting = guard.protect(Agent("a", model=script(payment(20000), payment(30000)), tools=[pay]))
    first = run(starting)
    agent.decide(agent.pending(), "approve")
    state = first.to_state()
    state.approve(first.interruptions[0])
    kept = first.context_wrapper.context[CONTEXT]
    kept["call-0"]["question"]["context"]["amount"] = 30000
    result = run(starting, state)
    assert not paid.exists() and "adapter_failed" in last_result(result)


def test_a_stop_ends_the_tool(authority: Any, agent: Bot, tmp_path: Path) -> None:
    begun, ended = tmp_path / "begun", tmp_path / "ended"

    @function_tool
    async def pay(amount: float, country: str) -> str:
        """Pays."""
        begun.touch()
        await asyncio.sleep(20)
        ended.touch()
        return "paid"

    def person() -> None:
        wait_for(begun.exists, 10, "the tool does not begin")
        time.sleep(0.3)
        agent.stop()

    installed(authority, watch=True)
    stopping = threading.Thread(target=person)
    stopping.start()
    started = time.monotonic()
    result = run(Agent("a", model=script(payment(1)), tools=[pay]))
    stopping.join()
    assert "stopped" in last_result(result) and not ended.exists() and time.monotonic() - started < 10
    assert agent.outcomes(1) == ["abandoned"]


def test_an_exception_of_the_tool_is_reported_and_handled_as_before(authority: Any, agent: Bot) -> None:
    def pay(amount: float, country: str) -> str:
        """Pays."""
        raise ZeroDivisionError("of the tool")

    installed(authority)
    handled = function_tool(pay)
    assert "error occurred" in last_result(run(Agent("a", model=script(payment(1)), tools=[handled])))
    with pytest.raises(Exception, match="of the tool"):
        run(Agent("a", model=script(payment(1)), tools=[function_tool(pay, failure_error_function=None)]))
    reports = [(report["outcome"], report["detail"]) for report in agent.reports(2)]
    assert reports == [("failed", "ZeroDivisionError")] * 2


def test_nothing_runs_while_the_service_is_down(agent: Bot, pay: Any, paid: Path) -> None:
    down = Authority(**{**agent.options(), "url": f"http://127.0.0.1:{free_port()}", "timeout": 0.3})
    try:
        installed(down)
        result = run(Agent("a", model=script(payment(1)), tools=[pay]))
    finally:
        set_default_agent_runner(None)
    assert "no permission" in last_result(result) and not paid.exists()


# Door 2: tools that run at the provider


def test_provider_tools_are_refused_before_the_model_is_called(authority: Any, pay: Any) -> None:
    hosted: Any = HostedMCPTool({"type": "mcp", "server_label": "x", "server_url": "https://example.org"})
    code: Any = CodeInterpreterTool({"type": "code_interpreter", "container": {"type": "auto"}})
    guard = installed(authority)
    for tool in (WebSearchTool(), hosted, code):
        starting = Agent("a", model=script(), tools=[pay, tool])
        with pytest.raises(Denied, match=tool.name):
            guard.protect(starting)
        with pytest.raises(Denied, match=tool.name):
            run(starting)
    settings = ModelSettings(extra_body={"tools": [{"type": "web_search"}]})
    with pytest.raises(Denied, match="model setting tools"):
        run(Agent("a", model=script(), model_settings=settings))
    with pytest.raises(Denied, match="model setting tools"):
        run(Agent("a", model=script()), run_config=RunConfig(model_settings=settings))
    with pytest.raises(Denied, match="prompt"):
        run(Agent("a", model=script(), prompt={"id": "pmpt_1"}))
    installed(authority, unguarded=["web_search"])
    assert run(Agent("a", model=script(), tools=[WebSearchTool()])).final_output == "done"


# Door 3: tools that are added later, handoffs, agents as tools


def test_a_tool_added_later_is_guarded(authority: Any, pay: Any, paid: Path) -> None:
    guard = installed(authority)
    starting = guard.protect(Agent("a", model=script(payment(1, "US"))))
    starting.tools.append(pay)
    assert "jurisdiction_unsupported" in last_result(run(starting)) and not paid.exists()
    copied = starting.clone(model=script(payment(1, "US")))
    set_default_agent_runner(None)
    assert "jurisdiction_unsupported" in last_result(run(copied)) and not paid.exists()


def test_a_handoff_is_guarded(authority: Any, pay: Any, paid: Path) -> None:
    installed(authority)

    def other() -> Any:
        return Agent("other", model=script(payment(1, "US"), ids="other"), tools=[pay])

    for item in (other(), handoff(other())):
        starting = Agent("a", model=script(("transfer_to_other", {})), handoffs=[item])
        result = run(starting)
        assert result.last_agent.name == "other" and "jurisdiction_unsupported" in last_result(result)
    made = other()
    item = handoff(made)

    async def elsewhere(ctx: Any, arguments: str) -> Any:
        return other()

    item.on_invoke_handoff = elsewhere
    result = run(Agent("a", model=script(("transfer_to_other", {})), handoffs=[item]))
    assert "jurisdiction_unsupported" in last_result(result) and not paid.exists()


def test_an_agent_within_a_tool_is_guarded(authority: Any, pay: Any, paid: Path) -> None:
    installed(authority)
    results = []

    def helper() -> Any:
        return Agent("helper", model=script(payment(1, "US")), tools=[pay])

    @function_tool
    async def ask_helper(task: str) -> str:
        """Asks the helper."""
        results.append(last_result(await Runner.run(helper(), task)))
        return "asked"

    async def extract(result: Any) -> str:
        results.append(last_result(result))
        return "asked"

    as_tool = helper().as_tool("ask_helper", "Asks the helper.", custom_output_extractor=extract)
    for tool, asked in ((ask_helper, {"task": "pay"}), (as_tool, {"input": "pay"})):
        assert last_result(run(Agent("a", model=script(("ask_helper", asked)), tools=[tool]))) == "asked"
    assert len(results) == 2 and all("jurisdiction_unsupported" in text for text in results) and not paid.exists()


def test_a_run_within_a_tool_pauses_and_goes_on(authority: Any, agent: Bot, pay: Any, paid: Path) -> None:
    helper = Agent("helper", model=script(payment(20000), ids="inner"), tools=[pay])
    starting = Agent(
        "a", model=script(("ask_helper", {"input": "pay"})), tools=[helper.as_tool("ask_helper", "Asks the helper.")]
    )
    installed(authority, pause=True)
    first = run(starting)
    (item,) = first.interruptions
    agent.decide(agent.pending(), "approve")
    state = first.to_state()
    state.approve(item)
    result = run(starting, state)
    assert result.final_output == "done" and paid.read_text() == "20000.0 DE\n", last_result(result)
    assert len(agent.approvals()) == 1


def test_a_state_of_an_unguarded_agent_is_refused(authority: Any, pay: Any) -> None:
    asking = function_tool(lambda amount, country: "paid", name_override="pay", needs_approval=True)
    unguarded = Agent("a", model=script(payment(1)), tools=[asking])
    state = run(unguarded).to_state()
    installed(authority)
    with pytest.raises(Denied, match="protect"):
        run(unguarded, state)


# Door 4: a hook after ours changes the call


def test_a_hook_cannot_change_the_arguments(authority: Any, pay: Any, paid: Path) -> None:
    class Changes(RunHooks[Any]):
        async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
            context.tool_call.arguments = '{"amount": 9000, "country": "DE"}'
            context.tool_arguments = context.tool_call.arguments

    installed(authority)
    result = run(Agent("a", model=script(payment(1)), tools=[pay]), hooks=Changes())
    assert "arguments_changed" in last_result(result) and not paid.exists()


# Door 5: an exception of ours is a refusal


@pytest.mark.parametrize(
    "broken",
    BROKEN,
    ids=["mapping", "action", "type"],
)
@pytest.mark.parametrize("pause", [False, True])
def test_an_exception_in_a_mapping_is_a_refusal(
    authority: Any, pay: Any, paid: Path, broken: Tool, pause: bool
) -> None:
    installed(authority, tools={"pay": broken}, pause=pause)
    result = run(Agent("a", model=script(payment(1)), tools=[pay]))
    assert "did not run" in last_result(result) and not paid.exists()


def test_two_tools_may_have_one_call_id(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, asked, made = Calls(AsyncAuthority("http://localhost:1", "svc_sandbox_x")), [], object()

    async def decide(question: Any, held: Any) -> None:
        asked.append(question.action)

    monkeypatch.setattr(calls, "decide", decide)
    pending = Pending(calls)
    for name in ("pay", "refund"):
        asyncio.run(pending.ask(made, "call-0", name, "{}", lambda: None))
    assert asked == ["tool.pay", "tool.refund"]
    taken = asyncio.run(pending.begin(made, "call-0", "pay", "{}", lambda: None))
    assert taken.question.action == "tool.pay"


@pytest.mark.parametrize("place", ["decide", "permit"])
def test_an_exception_in_the_adapter_is_a_refusal(
    authority: Any, pay: Any, paid: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    def breaks(*_: Any, **__: Any) -> Any:
        raise RuntimeError("a defect")

    monkeypatch.setattr(installed(authority).calls, place, breaks)
    result = run(Agent("a", model=script(payment(1)), tools=[pay]))
    assert "adapter_failed" in last_result(result) and not paid.exists()
