"""A tenant of a real service, with an agent for each test."""

from __future__ import annotations

import itertools
import json
import os
import secrets
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: Amounts above 10000 wait for an approval. Amounts are in the context, as the tools of the tests map them.
LARGE = """@id("large") @decision("require_approval") @reason("approval_threshold_breach")
forbid (principal, action, resource)
unless { context has amount && context.amount.lessThanOrEqual(decimal("10000.0")) };"""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


class Service:
    """A service of its own, with its own database. With ``url``, one that runs already on this folder."""

    def __init__(self, binary: str, folder: Path, url: str | None = None) -> None:
        self._binary, self._folder = binary, folder
        self.url = url or f"http://127.0.0.1:{free_port()}"
        self._options = ["--data-dir", str(folder / "data"), "--listen", self.url.partition("://")[2]]
        self._process: subprocess.Popen[bytes] | None = None
        if url is None:
            self._start(f"127.0.0.1:{free_port()}")

    def _start(self, ops: str) -> None:
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [self._binary, "serve", *self._options], stdout=log, stderr=log, cwd=self._folder,
                env={**os.environ, "AGENT_AUTHORITY__LISTEN__OPS": ops}, start_new_session=True,
            )  # fmt: skip
        wait_for(self._is_ready, 120, "the service does not start")

    def _is_ready(self) -> bool:
        if self._process and self._process.poll() is not None:
            raise RuntimeError((self._folder / "log").read_text())
        try:
            with urllib.request.urlopen(f"{self.url}/health/ready", timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def token(self, *who: str) -> str:
        command = [self._binary, "token", *who, *self._options]
        return subprocess.run(command, capture_output=True, text=True, check=True, cwd=self._folder).stdout.strip()

    def stop(self) -> None:
        if self._process:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(60)


def wait_for(is_so: Callable[[], Any], seconds: float, problem: str) -> Any:
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        if found := is_so():
            return found
        time.sleep(0.05)
    raise AssertionError(problem)


class World:
    """A tenant: one person, one approver, a purpose and a policy for large amounts."""

    def __init__(self, service: Service) -> None:
        self.url, self._owner = service.url, service.token("owner")
        self._numbers = itertools.count(1)
        self.slug = f"example-{secrets.token_hex(4)}"
        self.tenant = {"tenant_id": f"svc:tenant:{self.slug}"}
        self.make("tenants", name="Example", slug=self.slug, env="sandbox")
        self.approver = service.token("tenant", "--tenant", self.slug, "--role", "approver")
        person = {"principal_class": "human", "display_name": "Head of finance", "email": "finance@example.org"}
        self._person = self.make("principals", **self.tenant, **person)["id"]
        approver = {"display_name": "First approver", "email": f"approver@{self.slug}.example"}
        self.make("principals", **self.tenant, principal_class="human", **approver)
        purpose = {"slug": "invoice-settlement", "name": "Settle invoices", "allowed_actions": ["payment.*", "tool.*"]}
        self.make("purposes", **self.tenant, **purpose)
        policy = {"regime": "internal", "name": "Large payments", "applies_to": ["action:payment.*"], "cedar": LARGE}
        self.make("policies", **self.tenant, **policy)

    def call(self, path: str, body: Any = None, token: str | None = None, method: str | None = None) -> Any:
        headers = {"authorization": f"Bearer {token or self._owner}", "content-type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path}: {error.code} {error.read().decode()}") from None

    def make(self, records: str, **members: Any) -> Any:
        made = self.call(f"/api/v1/{records}", members)
        return next(value for value in [made, *made.values()] if isinstance(value, dict) and "id" in value)

    def agent(self, *actions: str) -> Agent:
        """Makes an agent with a delegation for the actions, and its key."""
        name = f"bot-{next(self._numbers)}"
        agent = f"svc:agent:{self.slug}:{name}"
        owner = {"owner_principal_id": self._person, "display_name": name}
        self.make("principals", **self.tenant, principal_class="agent", name=name, **owner)
        terms = {"delegator_id": self._person, "delegate_id": agent, "purposes": ["invoice-settlement"]}
        bounds = {"max_amount": "50000", "currency": "EUR", "jurisdictions": ["DE"]}
        payments = [action for action in actions if action.startswith("payment.")]
        self.make("delegations", **self.tenant, **terms, **bounds, actions=payments)
        self.make("delegations", **self.tenant, **terms, actions=[a for a in actions if a not in payments])
        scopes = {"scopes": ["runtime:write", "runtime:read"], "principal_ids": [agent], "label": name}
        key = self.call("/api/v1/api-keys", {**self.tenant, **scopes})
        return Agent(self, agent, key["secret"])


class Agent:
    """An agent of the tenant, and what people do about it."""

    def __init__(self, world: World, subject: str, key: str) -> None:
        self._world, self.subject, self.key = world, subject, key

    def options(self) -> dict[str, Any]:
        """The parameters of its ``Authority``, with time for a busy machine."""
        agent = {"url": self._world.url, "api_key": self.key, "subject": self.subject}
        return {**agent, "purpose": "invoice-settlement", "timeout": 20.0}

    def approvals(self) -> list[Any]:
        """Its approval requests, in whatever state, oldest first."""
        listed = self._world.call("/v1/approvals", token=self.key)
        found: list[Any] = listed["approvals"]
        return found

    def pending(self, seconds: float = 10) -> str:
        """The id of its pending approval request, when there is one."""
        states = {"pending"}
        found = wait_for(lambda: [a for a in self.approvals() if a["state"] in states], seconds, "nothing is held")
        assert len(found) == 1, found
        return str(found[0]["id"])

    def decide(self, approval_id: str, act: str) -> None:
        """Approves or declines a request as another person."""
        reason = {"reason": "not now"} if act == "decline" else {}
        self._world.call(f"/api/v1/app/approvals/{approval_id}/{act}", reason, token=self._world.approver)

    def stop(self) -> None:
        """Stops the agent."""
        members = {**self._world.tenant, "actor_id": self.subject, "reason": "test"}
        self._world.call("/api/v1/stop-signals", members)

    def decisions(self) -> list[Any]:
        """Its decisions, oldest first, with their reports."""
        mine = f"tenant_id={self._world.tenant['tenant_id']}&subject={self.subject}"
        listed = self._world.call(f"/api/v1/decisions?{mine}")
        found = [self._world.call(f"/v1/decisions/{decision['decision_id']}") for decision in listed["decisions"]]
        return sorted(found, key=lambda decision: str(decision["decision_id"]))

    def reports(self, count: int) -> list[Any]:
        """The reports about its permissions, when there are that many."""

        def reported() -> list[Any]:
            found = [decision["report"] for decision in self.decisions() if decision.get("report")]
            return found if len(found) >= count else []

        found: list[Any] = wait_for(reported, 10, f"fewer than {count} reports")
        return found

    def outcomes(self, count: int) -> list[str]:
        """The reported outcomes of its permissions, when there are that many."""
        return [report["outcome"] for report in self.reports(count)]
