"""A Pydantic AI agent that pays an invoice, if it is permitted. Held payments wait for people.

python with_pydantic_ai.py AMOUNT COUNTRY
"""

import os
import sys
from datetime import timedelta
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from agent_authority import AsyncAuthority
from agent_authority.adapters import Tool
from agent_authority.adapters.pydantic_ai import AuthorityCapability


def pay(amount: float, country: str, iban: str) -> str:
    """Pays an amount in EUR to an account in a country."""
    print("paid", amount, "EUR to", iban)
    return "The invoice is paid."


def scripted(arguments: dict[str, Any]) -> FunctionModel:
    """Stands in for a model: it calls ``pay`` with these arguments, and then repeats the result."""

    def answer(messages: list[Any], info: AgentInfo) -> ModelResponse:
        last = messages[-1].parts[-1]
        is_first = last.part_kind == "user-prompt"
        return ModelResponse([ToolCallPart("pay", arguments) if is_first else TextPart(last.content)])

    return FunctionModel(answer)


def main() -> None:
    amount, country = sys.argv[1:]
    arguments = {"amount": float(amount), "country": country, "iban": "DE02120300000000202051"}
    # A real model needs the extra pydantic-ai-slim[openai].
    model: Any = "openai:gpt-5.5" if os.environ.get("OPENAI_API_KEY") else scripted(arguments)
    authority = AsyncAuthority.from_env(purpose="invoice-settlement")
    payments = Tool(
        "payment.execute",
        amount=lambda asked: asked["amount"],
        currency="EUR",
        context=lambda asked: {"jurisdiction": asked["country"]},
    )
    guard = AuthorityCapability(authority, tools={"pay": payments}, wait=timedelta(minutes=10))
    agent = Agent(model, tools=[pay], capabilities=[guard])
    print(agent.run_sync(f"Pay the invoice: {arguments}").output)
    authority.flush()


if __name__ == "__main__":
    main()
