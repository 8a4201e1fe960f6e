"""What all cases share: the service, its people, the tenants, and the programs that guard a tool."""

from __future__ import annotations

import asyncio
import json
import os
import uuid
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

from driver import Driver
from http1 import Message
from proxy import Fault, Proxy
from scenarios import Case
from world import Service, World, create

# Tenant: its settings, and whether an approver is registered.
TENANTS: dict[str, tuple[dict[str, Any], bool]] = {
    "main": ({"open_requests_per_agent": 100_000, "cite_ready_approval": True}, True),
    "brief": ({"valid_for_seconds": 1, "approval_ttl_seconds": 60}, True),
    "other": ({}, True),
    "alone": ({}, False),
    "stop": ({}, True),
}


class TooSlow(Exception):
    """The machine is too slow for the deadline of a call, which therefore shows nothing."""


@dataclass
class Session:
    """The service with its people and tenants, and the running programs."""

    owner: Service
    approver: Service
    worlds: dict[str, World]
    keys: dict[str, Path]
    folder: Path
    drivers: dict[tuple[str, int], asyncio.Task[Driver]] = field(default_factory=dict)

    async def driver(self, language: str, clock: int = 0) -> Driver:
        """Returns the running program for this language and clock."""
        if (language, clock) not in self.drivers:
            self.drivers[language, clock] = asyncio.create_task(Driver(language, clock).start())
        return await self.drivers[language, clock]

    def proxy(self, faults: list[Fault], reference: str, older: Message | None = None) -> Proxy:
        address = urlsplit(self.owner.url)
        return Proxy(address.hostname or "", address.port or 80, faults, Random(reference), reference, older)


def key_files(owner: Service, folder: Path) -> dict[str, Path]:
    """Writes the service's keys, and sets of keys with which no permit may verify."""
    jwks = owner.call("GET", "/.well-known/jwks.json")
    sets = {"genuine": jwks, "foreign": deepcopy(jwks), "revoked": deepcopy(jwks), "purpose": deepcopy(jwks)}
    for key in sets["foreign"]["keys"]:
        key["x"] = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
    for key in sets["revoked"]["keys"]:
        key["revoked_at"] = "2020-01-01T00:00:00Z"
    for key in sets["purpose"]["keys"]:
        key["kid"] = key["kid"].replace("-evidence-", "-replay-")
    paths = {name: folder / f"{name}.json" for name in sets}
    for name, path in paths.items():
        path.write_text(json.dumps(sets[name]))
    return paths


def prepare(folder: Path) -> Session:
    url, tenant = os.environ["URL"], os.environ["TENANT"]
    owner, approver = Service(url, os.environ["OWNER_TOKEN"]), Service(url, os.environ["APPROVER_TOKEN"])
    worlds = {
        name: create(owner, tenant if name == "main" else f"{tenant}-{name}", settings, has_approver)
        for name, (settings, has_approver) in TENANTS.items()
    }
    return Session(owner, approver, worlds, key_files(owner, folder), folder)


def order_of(shared: Session, case: Case, url: str, world: World, reference: str) -> dict[str, Any]:
    """Returns the line for the program that makes the call."""
    return {
        "id": uuid.uuid4().hex,
        "url": url,
        "key": "svc_sandbox_revoked" if case.get("key") == "revoked" else world.key,
        "subject": world.agent,
        "jwks": str(shared.keys[case.get("jwks", "genuine")]),
        "action": case.call["action"],
        "purpose": "invoice-settlement",
        "arguments": case.call["arguments"] | {"reference": reference},
        "deadline": case.deadline,
        "wait": case.wait,
        "lasts": case.get("lasts", 0),
        "watch": case.get("watch", False),
        "fails": case.get("fails", False),
        "handles": case.get("handles", []),
        "file": str(shared.folder / uuid.uuid4().hex),
    }


def lines_of(path: str) -> list[str]:
    try:
        return Path(path).read_text().split("\n")
    except FileNotFoundError:
        return []


def read_file(path: str) -> tuple[list[float], int]:
    """Returns the times at which the tool's body began, and how often it finished."""
    return read_times(path, "started"), lines_of(path).count("finished")


def read_times(path: str, word: str) -> list[float]:
    """Returns the monotonic times that the tool's body noted with this word."""
    return [int(line.split()[1]) / 1e9 for line in lines_of(path) if line.startswith(word)]
