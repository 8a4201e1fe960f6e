"""The client against a running service.

Needs AGENT_AUTHORITY_BIN, the server's program; or AGENT_AUTHORITY_URL, AGENT_AUTHORITY_API_KEY, and tokens of the
owner and of an approver of the tenant `acme` in OWNER and APPROVER.
"""

import asyncio
import json
import logging
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import uuid
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

from agent_authority import AsyncAuthority, Authority, Denied, Held, Question

logging.getLogger("agent_authority").setLevel(logging.CRITICAL)
SUBJECT = "svc:agent:acme:invoice-bot"
PROGRAM = os.environ.get("AGENT_AUTHORITY_BIN")
RESUME = """
import sys
from agent_authority import Authority, Denied, Held
url, key, held = sys.argv[1:]
try:
    with Authority(url, key) as authority, authority.resume(Held.from_json(held)):
        print("ran")
except Denied as error:
    print(error.code)
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start():
    """Starts a server of its own; returns the environment of a test, and the function that ends it."""
    folder, port = tempfile.mkdtemp(), free_port()
    place = ["--data-dir", f"{folder}/data", "--listen", f"127.0.0.1:{port}"]
    env = {**os.environ, "AGENT_AUTHORITY__LISTEN__OPS": f"127.0.0.1:{free_port()}"}
    log = open(f"{folder}/log", "w+")
    server = subprocess.Popen([PROGRAM, "serve", *place], env=env, stdout=log, stderr=subprocess.STDOUT)

    def end():
        server.terminate()
        server.wait(30)
        log.close()
        shutil.rmtree(folder, ignore_errors=True)

    for _ in range(1200):
        with open(f"{folder}/log") as shown:
            if key := re.search(r"export KEY=(\S+)", shown.read()):
                break
        time.sleep(0.1)
    else:
        end()
        raise RuntimeError("the server does not start")

    def token(*words):
        return subprocess.run([PROGRAM, "token", *words, *place], capture_output=True, text=True, check=True).stdout.strip()

    return {"AGENT_AUTHORITY_URL": f"http://127.0.0.1:{port}", "AGENT_AUTHORITY_API_KEY": key[1],
            "OWNER": token("owner"), "APPROVER": token("tenant", "--tenant", "acme", "--role", "approver")}, end  # fmt: skip


@unittest.skipUnless(PROGRAM or os.environ.get("OWNER"), "needs a server")
class Live(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.env, end = start() if PROGRAM else (os.environ, lambda: None)
        cls.addClassCleanup(end)
        cls.url, cls.key = cls.env["AGENT_AUTHORITY_URL"], cls.env["AGENT_AUTHORITY_API_KEY"]

    def setUp(self):
        import httpx

        self.http = httpx.Client(base_url=self.url, timeout=30)
        self.addCleanup(self.http.close)
        self.authority = self.make(Authority)
        self.addCleanup(self.authority.close)

    def make(self, kind):
        return kind(self.url, self.key, subject=SUBJECT, purpose="invoice-settlement", timeout=30)

    def call(self, who, method, path, body=None):
        answer = self.http.request(method, path, json=body, headers={"authorization": f"Bearer {self.env[who]}"})
        self.assertLess(answer.status_code, 300, answer.text)
        return answer.json()

    def question(self, amount="1200.50", place="DE"):
        context = {"amount": amount, "currency": "EUR", "jurisdiction": place, "invoice": uuid.uuid4().hex}
        return Question("payment.execute", context=context)

    def hold(self, question=None):
        with self.assertRaises(Held) as found:
            self.authority.permit(question or self.question("25000")).__enter__()
        return found.exception

    def act(self, held, act, **more):
        shown = self.call("APPROVER", "GET", f"/api/v1/app/approvals/{held.approval_id}")["approval"]
        self.assertEqual(shown["request_digest"], held.digest)
        self.call("APPROVER", "POST", f"/api/v1/app/approvals/{held.approval_id}/{act}", {"request_digest": held.digest, **more})

    def reported(self, decision_id):
        self.authority.flush(10)
        return self.call("OWNER", "GET", f"/v1/decisions/{decision_id}")["report"]["outcome"]

    def test_allow_and_deny(self):
        with self.authority.permit(self.question()) as permit:
            pass
        self.assertEqual(self.reported(permit.decision.decision_id), "executed")
        with self.assertRaises(Denied) as found:
            self.authority.decide(self.question(place="US"))
        self.assertEqual(found.exception.code, "jurisdiction_unsupported")
        with self.assertRaises(Denied) as found:
            self.authority.decide(Question("not an action"))
        self.assertEqual(found.exception.code, "invalid_request")

    def test_every_member_is_in_the_record(self):
        question = self.question().replace(
            action_declaration={"effect_class": "financial", "reversibility": None}, supported_obligations=["b", "a", "b"],
            action_risk_classification={"risk_tier": "minimal"}, justification="the supplier waits", at_least_revision=1,
        )  # fmt: skip
        self.assertTrue(self.authority.decide(question).permits)

    def test_all_kinds_of_arguments(self):
        @self.authority.guard("payment.execute", amount=lambda a: a["amount"], currency="EUR", context={"jurisdiction": "DE"})
        def pay(amount, **more):
            return more

        more = {"ü€😀": "ü€😀", "none": None, "list": [1, [2.5, None]], "big": 2**53 - 1, "small": 1e-7, "bytes": b"x", "zero": -0.0}
        self.assertEqual(pay(Decimal("1200.5"), **more), more)

    def test_a_wait_ends_with_the_approval(self):
        question = self.question("25000.50")
        with ThreadPoolExecutor(1) as pool:
            def wait():
                with self.authority.permit(question, wait=60) as permit:
                    return permit.decision.decision_id

            waiting = pool.submit(wait)
            held = self.hold(question)
            self.act(held, "approve")
            decision_id = waiting.result(20)
        self.assertEqual(self.reported(decision_id), "executed")
        with self.assertRaises(Denied) as found:
            self.authority.resume(held).__enter__()
        self.assertEqual(found.exception.code, "used")

    def test_a_wait_ends_with_the_decline(self):
        question = self.question("25000")
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(lambda: self.authority.permit(question, wait=60).__enter__())
            self.act(self.hold(question), "decline", reason="not this one")
            with self.assertRaises(Denied) as found:
                waiting.result(20)
        self.assertEqual(found.exception.code, "declined")
        with self.assertRaises(Denied) as found:
            self.authority.decide(question)
        self.assertEqual(found.exception.code, "approval_declined")

    def test_two_processes_resume_and_one_runs(self):
        held = self.hold()
        self.act(held, "approve")
        resume = [sys.executable, "-c", RESUME, self.url, self.key, json.dumps(held.to_json())]
        runs = [subprocess.Popen(resume, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        self.assertEqual(sorted(run.communicate()[0].strip() for run in runs), ["ran", "used"])

    def test_fifty_waiters_and_one_runs(self):
        question, ran, others = self.question("25000"), [], []

        async def wait(authority):
            try:
                async with authority.permit(question, wait=60):
                    ran.append(1)
            except Denied as error:
                others.append(error.code)

        async def main():
            async with self.make(AsyncAuthority) as authority:
                with self.assertRaises(Held) as found:
                    await authority.decide(question)
                follow, waiting = authority.core._watch_approval, []

                async def followed(*arguments):
                    waiting.append(arguments)
                    return await follow(*arguments)

                # A waiter that asks only after the approval was used has opened a request of its own.
                authority.core._watch_approval = followed
                waiters = [asyncio.create_task(wait(authority)) for _ in range(50)]
                while len(waiting) < 50:
                    await asyncio.sleep(0.1)
                await asyncio.to_thread(self.act, found.exception, "approve")
                await asyncio.gather(*waiters)

        asyncio.run(main())
        self.assertEqual((len(ran), set(others)), (1, {"used"}))

    def test_a_ready_approval_is_used_without_citing_it(self):
        question = self.question("25000")
        self.act(self.hold(question), "approve")
        with self.authority.permit(question) as permit:
            self.assertIn("approval_id", json.loads(permit.decision.record)["request"])

    def stop(self, seconds):
        """Stops the agent after some seconds; returns the function that releases it."""
        timer = threading.Timer(seconds, self.call, ("OWNER", "POST", "/api/v1/stop-signals", {
            "tenant_id": "svc:tenant:acme", "actor_id": SUBJECT, "reason": "test"}))  # fmt: skip
        timer.start()

        def release():
            timer.join()
            signals = self.call("OWNER", "GET", f"/api/v1/stop-signals?actor_id={SUBJECT}&tenant_id=svc:tenant:acme")
            for signal in next(value for value in signals.values() if isinstance(value, list)):
                if signal["state"] == "active":
                    self.call("OWNER", "POST", f"/api/v1/stop-signals/{signal['id']}/lift", {"reason": "test"})

        return release

    def test_a_stop(self):
        with self.authority.permit(self.question(), watch=True) as permit:
            time.sleep(1)
            release = self.stop(0)
            begun = time.monotonic()
            stopped = permit.stopped.wait(5)
            took = time.monotonic() - begun
            release()
        self.assertTrue(stopped)
        self.assertLess(took, 2)
        self.assertEqual(permit.stop_condition, "actor.stop_signal")
        self.assertEqual(self.reported(permit.decision.decision_id), "abandoned")

    def test_a_stop_of_an_async_scope(self):
        async def main():
            async with self.make(AsyncAuthority) as authority:
                release = self.stop(2)
                try:
                    async with authority.permit(self.question()):
                        await asyncio.sleep(20)
                finally:
                    await asyncio.to_thread(release)

        with self.assertRaises(Denied) as found:
            asyncio.run(main())
        self.assertEqual(found.exception.code, "stopped")
        self.assertEqual(self.reported(found.exception.decision.decision_id), "abandoned")

    def test_evidence_of_a_permit(self):
        question = self.question()
        decision = self.authority.decide(question)
        call = Question(question.action, context=question.context)
        verified = self.authority.verify(decision.proof(), call, tenant_id="svc:tenant:acme")
        self.assertEqual(verified.decision_id, decision.decision_id)
        pack = self.call("OWNER", "POST", "/v1/evidence/seal", {"decision_id": decision.decision_id})
        bundle = self.call("OWNER", "GET", f"/v1/evidence/{decision.decision_id}?bundle=true")
        for document in (pack, bundle):
            self.assertEqual(self.authority.verify(document), "valid")
        bundle["pack"]["record"]["nonce"] = "0"
        with self.assertRaisesRegex(Exception, "record_digest"):
            self.authority.verify(bundle)


if __name__ == "__main__":
    unittest.main()
