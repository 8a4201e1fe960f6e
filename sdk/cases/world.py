"""Creates the tenants in which the cases run."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.error
import urllib.request
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ATTEMPTS = 8
APPROVER = {"path": "principals", "body": {
    "tenant_id": "$tenant", "principal_class": "human", "display_name": "Approver",
    "email": "approver@$slug.example", "external_subject": "dev|approver@$slug.example"}}


@dataclass
class Service:
    """The service's API, with a credential."""

    url: str
    token: str

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Makes a call, and repeats it with its idempotency key while a busy machine leaves it unanswered."""
        headers = {
            "authorization": f"Bearer {self.token}", "content-type": "application/json",
            "idempotency-key": str(uuid.uuid4()),
        }
        data = None if body is None else json.dumps(body).encode()
        for left in reversed(range(ATTEMPTS)):
            request = urllib.request.Request(f"{self.url}{path}", data, headers, method=method)
            try:
                with urllib.request.urlopen(request, timeout=60) as response:
                    return json.loads(response.read() or b"null")
            except urllib.error.HTTPError as error:
                text = error.read().decode()
                is_busy = error.code in (429, 503) or "idempotency_in_progress" in text
                if not is_busy or not left:
                    raise RuntimeError(f"{method} {path}: {error.code} {text}") from None
            time.sleep(0.5)

    async def send(self, method: str, path: str, body: Any = None) -> Any:
        return await asyncio.to_thread(self.call, method, path, body)


@dataclass
class World:
    """A tenant with an agent that may pay, and the agent's key."""

    tenant: str
    agent: str
    owner: str
    delegation: str
    key: str


def filled(value: Any, names: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        return {key: filled(member, names) for key, member in value.items()}
    if isinstance(value, list):
        return [filled(member, names) for member in value]
    if not isinstance(value, str):
        return value
    if isinstance(whole := names.get(value.removeprefix("$")), dict):
        return whole
    for name in sorted(names, key=len, reverse=True):
        value = value.replace(f"${name}", str(names[name]))
    return value


def create(owner: Service, slug: str, settings: dict[str, Any], has_approver: bool = True) -> World:
    """Creates a tenant with these settings."""
    names: dict[str, Any] = {"slug": slug, "settings": settings}
    steps = json.loads((HERE / "world.json").read_text())
    for step in steps + ([APPROVER] if has_approver else []):
        path = f"/api/v1/{filled(step['path'], names)}"
        answer = owner.call(step.get("method", "POST"), path, filled(step["body"], names))
        if "as" in step:
            names[step["as"]] = answer[step["take"]] if "take" in step else found_id(answer)
    return World(*(names[name] for name in ("tenant", "agent", "owner", "delegation", "key")))


def found_id(answer: dict[str, Any]) -> str:
    """Returns the id of the record in the answer."""
    return answer["id"] if "id" in answer else next(
        member["id"] for member in answer.values() if isinstance(member, dict) and "id" in member
    )
