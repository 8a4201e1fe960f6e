"""The digests of generated arguments (arguments.json), in each language and by the service."""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from pathlib import Path
from typing import Any

from session import Session
from world import Service

TABLE = json.loads(Path(__file__).with_name("arguments.json").read_text())


async def converted(shared: Session, language: str, call: dict[str, Any]) -> dict[str, Any]:
    """Returns the canonical text of the arguments, or the reason why they are refused."""
    order = {"id": uuid.uuid4().hex, "convert": call, "redact_key": TABLE["redact_key"]}
    return await (await shared.driver(language)).run(order)


async def sealed(shared: Session, text: str) -> bool:
    """Returns whether the service seals the digest of this context."""
    world = shared.worlds["main"]
    agent = Service(shared.owner.url, world.key)
    context = f'{{"arguments":{text}}}'
    question = {"subject": world.agent, "action": "payment.execute", "purpose": "invoice-settlement"}
    body = question | {"context": json.loads(context), "include_record": True}
    answer = await agent.send("POST", "/api/v1/runtime/evaluate", body)
    salted = base64.b64decode(answer["context_salt"]) + context.encode()
    digest = f"sha256:{hashlib.sha256(salted).hexdigest()}"
    return json.loads(answer["record"])["request"]["context_digest"] == digest


async def compare(shared: Session, language: str, asked: int) -> bool:
    """Compares each digest with the table, and `asked` of them with the service."""
    found = []
    for number, call in enumerate(TABLE["calls"]):
        answer = await converted(shared, language, call)
        text = answer.get("text")
        if text is None or hashlib.sha256(text.encode()).hexdigest() != call["sha256"]:
            found.append(f"call {number}: {answer}: {call['arguments']}")
        elif number < asked and not await sealed(shared, text):
            found.append(f"call {number}: the service seals another digest: {text}")
    for value in TABLE["refused"]:
        answer = await converted(shared, language, {"arguments": {"value": value}, "redact": []})
        if "text" in answer:
            found.append(f"{value} is accepted as {answer['text']}")
    for line in found[:20]:
        print(f"FAILED {language}: {line}")
    count = len(TABLE["calls"]) + len(TABLE["refused"])
    print(f"{language}: {count} digests, {len(found)} differ", flush=True)
    return not found
