"""An agent of the Claude Agent SDK that pays an invoice, if it is permitted. Held payments wait for people.

python with_claude_agent_sdk.py AMOUNT COUNTRY
"""

import asyncio
import os
import sys
from datetime import timedelta
from typing import Any

from claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, TextBlock, create_sdk_mcp_server, query, tool
from scripted_claude import Blocks, ScriptedClaude, text, tool_results, tool_use

from agent_authority import AsyncAuthority
from agent_authority.adapters import Tool
from agent_authority.adapters.claude_agent import AuthorityHooks


@tool("pay", "Pays an amount in EUR to an account in a country.", {"amount": float, "country": str, "iban": str})
async def pay(asked: dict[str, Any]) -> dict[str, Any]:
    print("paid", asked["amount"], "EUR to", asked["iban"])
    return {"content": [{"type": "text", "text": "The invoice is paid."}]}


def scripted(arguments: dict[str, Any]) -> ScriptedClaude:
    """Stands in for a model: it calls ``pay`` with these arguments, and then repeats the result."""

    def script(messages: list[dict[str, Any]], tools: set[str]) -> Blocks:
        if not (results := tool_results(messages)):
            return [tool_use("toolu_1", "mcp__bank__pay", arguments)]
        content = results[-1]["content"]
        return [text(content if isinstance(content, str) else content[0]["text"])]

    return ScriptedClaude(script)


async def main() -> None:
    amount, country = sys.argv[1:]
    arguments = {"amount": float(amount), "country": country, "iban": "DE02120300000000202051"}
    env = {}
    if not os.environ.get("ANTHROPIC_API_KEY"):
        env = {"ANTHROPIC_API_KEY": "scripted", "ANTHROPIC_BASE_URL": scripted(arguments).url}
    bank = create_sdk_mcp_server("bank", tools=[pay])
    options = ClaudeAgentOptions(
        mcp_servers={"bank": bank}, allowed_tools=["mcp__bank__pay"], tools=[], setting_sources=[], env=env
    )
    payments = Tool(
        "payment.execute",
        amount=lambda asked: asked["amount"],
        currency="EUR",
        context=lambda asked: {"jurisdiction": asked["country"]},
    )
    async with AsyncAuthority.from_env(purpose="invoice-settlement") as authority:
        hooks = AuthorityHooks(authority, tools={"mcp__bank__pay": payments}, wait=timedelta(minutes=10))
        async for message in query(prompt=f"Pay the invoice: {arguments}", options=hooks.options(options)):
            if isinstance(message, AssistantMessage):
                print(*(block.text for block in message.content if isinstance(block, TextBlock)))


if __name__ == "__main__":
    asyncio.run(main())
