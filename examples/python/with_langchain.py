"""A LangChain agent that pays an invoice, if it is permitted. Held payments wait for people.

python with_langchain.py AMOUNT COUNTRY
"""

import os
import sys
from datetime import timedelta
from typing import Any

from langchain.agents import create_agent
from langchain.tools import tool
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from agent_authority import Authority
from agent_authority.adapters import Tool
from agent_authority.adapters.langchain import AuthorityMiddleware


@tool
def pay(amount: float, country: str, iban: str) -> str:
    """Pays an amount in EUR to an account in a country."""
    print("paid", amount, "EUR to", iban)
    return "The invoice is paid."


class Scripted(BaseChatModel):
    """Stands in for a model: it calls ``pay`` with these arguments, and then repeats the result."""

    arguments: dict[str, Any]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        call = {"name": "pay", "args": self.arguments, "id": "call-1"}
        is_first = messages[-1].type == "human"
        answer = AIMessage("", tool_calls=[call]) if is_first else AIMessage(messages[-1].content)
        return ChatResult(generations=[ChatGeneration(message=answer)])


def main() -> None:
    amount, country = sys.argv[1:]
    arguments = {"amount": float(amount), "country": country, "iban": "DE02120300000000202051"}
    # A real model needs the package langchain-openai.
    model: Any = "openai:gpt-5.5" if os.environ.get("OPENAI_API_KEY") else Scripted(arguments=arguments)
    with Authority.from_env(purpose="invoice-settlement") as authority:
        payments = Tool(
            "payment.execute",
            amount=lambda asked: asked["amount"],
            currency="EUR",
            context=lambda asked: {"jurisdiction": asked["country"]},
        )
        guard = AuthorityMiddleware(authority, tools={"pay": payments}, wait=timedelta(minutes=10))
        agent = create_agent(model, [pay], middleware=[guard])
        state = agent.invoke({"messages": [("user", f"Pay the invoice: {arguments}")]})
        print(state["messages"][-1].content)


if __name__ == "__main__":
    main()
