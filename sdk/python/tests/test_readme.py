"""The README's programs: its guarded tool, and its receiver with stand-ins for its web framework and HTTP client."""

import asyncio
import contextlib
import io
import json
import os
import re
import sys
import types
import unittest
from pathlib import Path
from unittest import mock

import service as scripted_service

README = Path(__file__).parents[1] / "README.md"
VECTORS = os.environ.get("WEBHOOK_VECTORS", Path(__file__).parents[2] / "vectors" / "webhooks.json")
TABLE = json.loads(Path(VECTORS).read_text("utf-8"))


class Service:
    """The service's JWKS, and stand-ins for the modules ``httpx`` and ``fastapi``."""

    def __init__(self):
        self.jwks, self.fetches = {"keys": []}, 0

    def modules(self):
        async def get(_self, url):
            return self.answer(url)

        async def entered(client):
            return client

        async def left(*_):
            return None

        client = type("AsyncClient", (), {"get": get, "__aenter__": entered, "__aexit__": left})
        httpx = types.SimpleNamespace(get=self.answer, AsyncClient=client)
        app = types.SimpleNamespace(post=lambda _path: lambda handler: handler)
        response = lambda status_code: status_code
        fastapi = types.SimpleNamespace(FastAPI=lambda: app, Request=object, Response=response)
        return {"httpx": httpx, "fastapi": fastapi}

    def answer(self, url):
        assert url == "https://authority.example/.well-known/jwks.json"
        self.fetches += 1
        answer = types.SimpleNamespace(json=lambda: self.jwks)
        answer.raise_for_status = lambda: answer
        return answer


def request(name):
    case = next(case for case in TABLE["cases"] if case["name"] == name)

    async def body():
        return case["body"].encode()

    return types.SimpleNamespace(body=body, headers=dict(case["headers"]))


def blocks():
    return re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)


class Readme(unittest.TestCase):
    def test_the_guarded_tool_runs_with_a_permission(self):
        scripted = scripted_service.Service()
        self.addCleanup(scripted.close)
        env = {"URL": scripted.url, "API_KEY": scripted_service.KEY, "SUBJECT": scripted_service.SUBJECT}
        env = {f"AGENT_AUTHORITY_{name}": value for name, value in env.items()}
        for verdict, shown in (("allow", "paid 1200.00 EUR to DE"), ("deny", "denied (x)"), ("held", "waits for approval")):
            if verdict == "held":
                verdict, scripted.verdicts["payment.execute"] = "", {"decision": "require_approval", "eligible": "none"}
            else:
                scripted.verdicts["payment.execute"] = {"decision": verdict, "reason_code": "x" if verdict == "deny" else "y"}
            printed, sample = io.StringIO(), {}
            with mock.patch.dict(os.environ, env), contextlib.redirect_stdout(printed):
                exec(blocks()[0], sample)
            sample["authority"].close()
            self.assertIn(shown, printed.getvalue())
        context = scripted.attempts[0]["context"]
        self.assertEqual((context["amount"], context["jurisdiction"]), (1200, "DE"))
        self.assertEqual([report["outcome"] for report in scripted.reports], ["executed"])

    def test_the_receiver_loses_nothing_in_a_rotation(self):
        (_, code) = blocks()
        service, handled, clock = Service(), [], {"now": 1_790_000_000}

        async def handle_once(event_id, _event):
            handled.append(event_id)

        sample = {"handle_once": handle_once}
        now = lambda: clock["now"]
        with mock.patch("time.time", now), mock.patch("time.monotonic", now):
            with mock.patch.dict(sys.modules, service.modules()):
                exec(code, sample)
            receive = lambda name: asyncio.run(sample["receive"](request(name)))
            service.jwks = TABLE["options"]["jwks"]
            # Not more than one fetch a minute, so that a stranger's deliveries cause no load.
            self.assertEqual((receive("rfc9421: signed"), service.fetches), (401, 1))
            clock["now"] += 60
            self.assertEqual((receive("rfc9421: signed"), service.fetches), (204, 2))
            self.assertEqual((receive("jwt: signed"), service.fetches), (204, 2))
            self.assertEqual((receive("jwt: a key that is not published"), service.fetches), (401, 2))
        self.assertEqual(len(handled), 2)


if __name__ == "__main__":
    unittest.main()
