"""An agent of the OpenAI Agents SDK that pays an invoice, if it is permitted. Held payments wait for people.

python with_openai_agents.py AMOUNT COUNTRY
"""

import json
import os
import sys
from datetime import timedelta
from typing import Any

from agents import Agent, Runner, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call

from agent_authority import AsyncAuthority
from agent_authority.adapters import Tool
from agent_authority.adapters.openai_agents import AuthorityGuard


@function_tool
def pay(amount: float, country: str, iban: str) -> str:
    """Pays an amount in EUR to an account in a country."""
    print("paid", amount, "EUR to", iban)
    return "The invoice is paid."


def main() -> None:
    amount, country = sys.argv[1:]
    arguments = {"amount": float(amount), "country": country, "iban": "DE02120300000000202051"}
    model: Any = None
    if not os.environ.get("OPENAI_API_KEY"):
        set_tracing_disabled(True)
        model = ScriptedModel([[function_call("pay", arguments, call_id="call-1")], [assistant_message("I am done.")]])
    authority = AsyncAuthority.from_env(purpose="invoice-settlement")
    payments = Tool(
        "payment.execute",
        amount=lambda asked: asked["amount"],
        currency="EUR",
        context=lambda asked: {"jurisdiction": asked["country"]},
    )
    AuthorityGuard(authority, tools={"pay": payments}, wait=timedelta(minutes=10)).install()
    result = Runner.run_sync(Agent("payer", model=model, tools=[pay]), f"Pay the invoice: {json.dumps(arguments)}")
    for item in result.new_items:
        if item.type == "tool_call_output_item":
            print(item.output)
    print(result.final_output)
    authority.flush()


if __name__ == "__main__":
    main()
