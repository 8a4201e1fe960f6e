"""Decisions and scopes against a scripted service: whatever fails, the action does not run."""

import asyncio
import json
import logging
import pickle
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from unittest import mock

import service as faults
from service import KEY, SUBJECT, Service

from agent_authority import AsyncAuthority, Authority, Denied, Held, Question, Unavailable, current_permit
from agent_authority.clock import clock
from agent_authority.http import ConnectionFailed, run

logging.getLogger("agent_authority").setLevel(logging.CRITICAL)

#: Seconds within which a busy machine does what takes milliseconds otherwise.
PROMPT = 10


class Case(unittest.TestCase):
    def setUp(self):
        self.service = Service()
        self.addCleanup(self.service.close)
        self.authority = self.make()
        self.ran = 0

    def make(self, kind=Authority, **options):
        options = {"subject": SUBJECT, "purpose": "invoice-settlement", "timeout": PROMPT, **options}
        authority = kind(self.service.url, KEY, **options)
        self.addCleanup(authority._io.close)
        self.addCleanup(authority.core.background.close)
        self.addCleanup(authority.flush, 1)
        return authority

    def set(self, authority, **settings):
        """Changes settings that only tests change."""
        import dataclasses

        authority.core.config = dataclasses.replace(authority.core.config, **settings)
        return authority

    def pay(self, authority=None, action="payment.execute", **options):
        authority = authority or self.authority
        with authority.permit(Question(action, context={"amount": "1200.50", "currency": "EUR"}), **options) as permit:
            self.ran += 1
            return permit

    def fault(self, fault):
        """Sets the fault of the next call, after what runs in the background."""
        self.assertTrue(self.authority.flush(10))
        self.service.faults = [fault]

    def refused(self, error, code=None, **options):
        with self.assertRaises(error) as found:
            self.pay(**options)
        if code is not None:
            self.assertEqual(found.exception.code, code, str(found.exception))
        self.assertEqual(self.ran, 0)
        return found.exception

    def reported(self, *outcomes, authority=None):
        (authority or self.authority).flush(5)
        self.assertEqual(self.service.outcomes(), list(outcomes))


class Decisions(Case):
    def test_an_allow_runs_once_and_is_reported(self):
        permit = self.pay()
        self.assertEqual(self.ran, 1)
        self.assertEqual(permit.decision.members["future_member"], 1)
        self.reported("executed")
        body = self.service.attempts[0]
        self.assertEqual(body["context"], {"amount": 1200.5, "currency": "EUR"})
        self.assertRegex(body["client_nonce"], "^[0-9a-f]{32}$")
        self.assertEqual((body["include_record"], body["supported_obligations"]), (True, []))

    def test_decide_returns_the_permission(self):
        decision = self.authority.decide(Question("payment.execute"))
        self.assertTrue(decision.permits)
        self.authority.report(decision, "failed", "no money")
        self.authority.flush(5)
        self.assertEqual(self.service.reports, [{"decision_id": decision.decision_id, "outcome": "failed", "detail": "no money"}])

    def test_a_denial(self):
        self.service.verdicts["payment.execute"] = {"decision": "deny", "reason_code": "constraint_exceeded"}
        error = self.refused(Denied, "constraint_exceeded")
        self.assertIn("payment.execute", str(error))
        self.reported()

    def test_an_unknown_decision_is_a_denial(self):
        for word in ("allow_sometimes", "", None):
            self.service.verdicts["payment.execute"] = {"decision": word}
            self.refused(Denied, "unknown_decision")

    def test_errors_of_the_service(self):
        for status, code in ((400, "invalid_request"), (401, "unauthenticated"), (403, "subject_not_permitted"), (422, "idempotency_key_reused")):
            self.fault(faults.status(status, code))
            self.refused(Denied, code)
        self.service.faults = [faults.status(409, "decision_stopped")]
        self.refused(Denied, "stopped")
        for status in (500, 302, 204):
            self.fault(faults.status(status, "internal"))
            self.refused(Unavailable)
        self.authority.flush(5)
        self.assertNotIn("executed", self.service.outcomes())

    def test_no_service(self):
        authority = Authority("http://127.0.0.1:9", KEY, subject=SUBJECT, jwks=self.service.jwks, timeout=0.3)
        begun = time.monotonic()
        self.refused(Unavailable, authority=authority)
        self.assertLess(time.monotonic() - begun, PROMPT)

    def test_a_replayed_first_attempt(self):
        self.service.faults = [faults.doubled]
        self.refused(Denied, "replayed")
        self.reported()

    def test_another_encoding_of_the_same_bytes(self):
        def salt(answer):
            self.assertTrue(answer["context_salt"].endswith("g=="))
            answer["context_salt"] = answer["context_salt"][:-3] + "h=="

        def signature(answer):
            parts = answer["evidence_pack"]["signature"]
            letter = parts["value"][-3]
            parts["value"] = parts["value"][:-3] + {"A": "B", "Q": "R", "g": "h", "w": "x"}[letter] + "=="

        for change in (salt, signature):
            self.fault(faults.changed(change))
            self.refused(Denied, "unverified")

    def test_a_question_that_cannot_be_sent(self):
        for context in ({"amount": 1.5}, {"amount": "1.00001"}, {"amount": "0.1e1"}, {"x": 2**53}, {"x": float("nan")}, {"x": object()}):
            with self.assertRaises(ValueError):
                Question("payment.execute", context=context)


class Faults(Case):
    """Each fault at each step. The counts are in the report of the change."""

    def transient(self):
        return {
            "503": faults.status(503), "502": faults.status(502), "504": faults.status(504), "429": faults.status(429, "rate_limited"),
            "409": faults.status(409, "idempotency_in_progress"), "cut before": faults.cut_before,
            "cut after": faults.cut_after, "cut within": faults.cut_within,
        }

    def test_a_transient_fault_is_retried_with_one_key(self):
        for name, fault in self.transient().items():
            with self.subTest(name):
                self.service.answers.clear()
                self.service.attempts.clear()
                self.service.faults, self.ran = [fault, fault], 0
                self.pay()
                self.assertEqual((self.ran, len(self.service.decisions)), (1, 1))
                self.assertEqual(len(self.service.attempts), 3)
                self.assertEqual(len({json.dumps(body) for body in self.service.attempts}), 1)

    def test_a_fault_that_lasts_is_unavailable_and_gives_the_claim_back(self):
        authority = self.make(timeout=0.25)
        for name, fault in self.transient().items():
            with self.subTest(name):
                self.service.answers.clear()
                self.service.reports.clear()
                self.service.faults = faults.Endless([fault])
                self.refused(Unavailable, authority=authority)
                self.service.faults = []
                self.assertTrue(authority.flush(10))
                abandoned = ["abandoned"] if self.service.decisions else []
                self.assertEqual(self.service.outcomes(), abandoned)
                self.assertLessEqual(len(self.service.decisions), 1)

    def test_a_service_that_is_always_too_slow(self):
        authority = self.make(timeout=0.2)
        self.service.faults = faults.Endless([faults.late(0.5)])
        with ThreadPoolExecutor(5) as pool:
            for refused in [pool.submit(self.refused, Unavailable, authority=authority) for _ in range(5)]:
                refused.result()
        authority.flush(10)
        self.assertEqual((len(self.service.decisions), self.service.outcomes()), (5, ["abandoned"] * 5))

    def test_headers_that_dribble(self):
        authority = self.make(timeout=0.3)
        for part in (b"HTTP/1.1 100 Continue\r\n\r\n", b"H"):
            self.fault(faults.dribble(part))
            begun = time.monotonic()
            self.refused(Unavailable, authority=authority)
            self.assertLess(time.monotonic() - begun, PROMPT)

    def test_calls_that_never_end_are_bounded(self):
        io = self.authority._io
        with mock.patch("agent_authority.http._MAX_LATE", 2):
            self.service.faults = faults.Endless([faults.dribble(b"HTTP/1.1 100 Continue\r\n\r\n")])
            call = self.authority.core.call("POST", "/api/v1/runtime/evaluate", {})
            sent = []
            for _ in range(3):
                with self.assertRaises(ConnectionFailed) as found:
                    run(io.send(call, 0.1))
                sent.append(found.exception.sent)
        self.assertEqual(sent, [True, True, False])

    def test_a_call_does_not_show_its_key(self):
        self.assertNotIn(KEY, repr(self.authority.core.call("GET", "/")))

    def test_a_refusal_after_an_attempt_that_was_permitted(self):
        self.service.faults = [faults.cut_after, faults.status(403, "forbidden")]
        self.refused(Denied, "forbidden")
        self.reported("abandoned")

    def test_an_answer_after_the_deadline_is_abandoned(self):
        authority = self.make(timeout=0.2)
        self.service.faults = [faults.delay(0.5)]
        self.refused(Unavailable, authority=authority)
        self.reported("abandoned", authority=authority)
        self.assertEqual(len(self.service.decisions), 1)

    def test_retry_after_is_obeyed(self):
        self.service.faults = [faults.status(429, "rate_limited", {"retry-after": "1"})]
        begun = time.monotonic()
        self.pay()
        self.assertGreaterEqual(time.monotonic() - begun, 1)
        self.service.faults = [faults.status(503, headers={"retry-after": "60"})]
        begun, self.ran = time.monotonic(), 0
        self.refused(Unavailable)
        self.assertLess(time.monotonic() - begun, PROMPT)

    def test_a_changed_answer_never_runs(self):
        def pack(answer, **changes):
            answer["evidence_pack"]["signature"].update(changes)

        other = {"record": "{}", "context_salt": "AAAAAAAAAAAAAAAAAAAAAA==", "valid_until": "2999-01-01T00:00:00Z",
                 "obligations": [], "stop_conditions": [], "reason_code": "x", "authority_revision": 8,
                 "decision_id": "svc:decision:" + "0" * 64}  # fmt: skip
        changes = {name: (lambda answer, name=name, value=value: answer.update({name: value})) for name, value in other.items()}
        changes |= {f"no {name}": (lambda answer, name=name: answer.update({name: None})) for name in other if name not in ("obligations", "stop_conditions")}
        changes |= {f"signature {name}": (lambda answer, name=name: pack(answer, **{name: "AA=="})) for name in ("alg", "canonicalization", "kid", "value")}
        changes |= {"no pack": lambda answer: answer.pop("evidence_pack") and None,
                    "no digest": lambda answer: answer["evidence_pack"].pop("record_digest") and None}  # fmt: skip
        for name, change in changes.items():
            with self.subTest(name):
                self.fault(faults.changed(change))
                with self.assertRaises((Denied, Unavailable)) as found:
                    self.pay()
                self.assertIn(getattr(found.exception, "code", "unverified"), ("unverified",), str(found.exception))
                self.assertEqual(self.ran, 0)
        self.authority.flush(20)
        # Each permission is given back, since the repeated answer was genuine.
        self.assertEqual(self.service.outcomes(), ["abandoned"] * len(changes))

    def test_any_changed_byte_of_the_record_never_runs(self):
        for place in range(0, 900, 9):
            def flip(answer, place=place):
                record = answer["record"]
                place %= len(record)
                answer["record"] = record[:place] + chr(ord(record[place]) ^ 1) + record[place + 1:]

            self.fault(faults.changed(flip))
            self.refused(Denied, "unverified")

    def test_a_record_for_another_request_never_runs(self):
        others = {"subject": "svc:agent:acme:other", "action": "payment.cancel", "purpose": "x", "client_nonce": "0" * 32,
                  "resource_id": "r", "tool_id": "t", "delegation_id": "d", "on_behalf_of": "p", "workspace_id": "w",
                  "project_id": "p", "supported_obligations": ["x"], "context_digest": "sha256:" + "0" * 64,
                  "action_declaration": {}, "at_least_revision": 1, "unknown": 1}  # fmt: skip
        for name, value in others.items():
            with self.subTest(name):
                self.fault(lambda handler, body, name=name, value=value:
                                       handler.answer(200, self.service.decide(body, {name: value})) or True)
                self.refused(Denied, "unverified")
        for name, value in {"tenant_id": "svc:tenant:other", "kind": "svc.other"}.items():
            with self.subTest(name):
                self.fault(lambda handler, body, name=name, value=value:
                                       handler.answer(200, self.service.decide(body, **{name: value})) or True)
                self.refused(Denied, "unverified")

    def test_an_older_permit_for_the_same_question_never_runs(self):
        self.pay()
        (older,) = self.service.decisions
        for _ in range(100):
            self.fault(lambda handler, body: handler.answer(200, older) or True)
            self.ran = 0
            self.refused(Denied, "unverified")
        self.authority.flush(20)
        # The older permit's own report stays; the new claims are given back.
        mine = [report for report in self.service.reports if report["decision_id"] == older["decision_id"]]
        self.assertEqual([report["outcome"] for report in mine], ["executed"])

    def test_malformed_answers(self):
        for body in (b"", b"{", b"[]", b"null", b'{"decision": "allow"}', b'{"decision": "allow", "decision": "allow"}',
                     b"\xff", b"[" * 100_000, b'{"decision": 1}'):  # fmt: skip
            self.fault(lambda handler, _body, body=body: handler.answer(200, body) or True)
            with self.assertRaises((Denied, Unavailable)):
                self.pay()
            self.assertEqual(self.ran, 0)

    def test_an_approval_that_was_not_sent_may_be_in_the_record(self):
        self.fault(lambda handler, body:
                               handler.answer(200, self.service.decide(body, {"approval_id": "svc:approval:1"})) or True)
        self.pay()
        self.assertEqual(self.ran, 1)

    def test_every_fault_many_times(self):
        """100 calls of each fault that lasts: no body runs."""
        lasting = {**self.transient(), "500": faults.status(500), "delay": faults.delay(0.05)}
        authority = self.make(timeout=0.02)
        ran = []

        @authority.guard("payment.execute")
        def pay(amount):
            ran.append(amount)

        for name, fault in lasting.items():
            self.service.faults = faults.Endless([fault])
            for number in range(100):
                with self.assertRaises(Unavailable, msg=name):
                    pay(number)
        self.assertEqual(ran, [])


class Keys(Case):
    def test_a_new_key_is_fetched_at_most_once_a_minute(self):
        self.pay()
        old, self.service.private = self.service.private, faults.Ed25519PrivateKey.generate()
        self.service.jwks = {"keys": [faults.key_id(old), faults.key_id(self.service.private)][::-1]}
        self.ran = 0
        self.refused(Denied, "unverified")
        with self.later(61):
            self.pay()
        self.assertEqual((self.ran, self.fetches()), (1, 2))

    def later(self, seconds):
        """A context in which the keys are older."""
        return mock.patch("agent_authority.keyring.clock", lambda: clock() + seconds)

    def fetches(self):
        return self.service.calls.count("/.well-known/jwks.json")

    def revoke(self):
        self.service.jwks = {"keys": [{**self.service.jwks["keys"][0], "revoked_at": "2026-01-01T00:00:00Z"}]}

    def test_a_key_is_not_trusted_longer_than_ten_minutes_after_its_revocation(self):
        self.pay()
        self.revoke()
        with self.later(589):
            self.pay()
        self.assertEqual((self.ran, self.fetches()), (2, 1))
        self.ran = 0
        with self.later(601):
            self.refused(Denied, "unverified")

    def test_keys_that_are_too_old_and_cannot_be_read_again_permit_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            for path in (None, faults.jwks_file(self.service, folder)):
                authority = self.make(jwks=path)
                self.pay(authority)
                self.ran, attempts = 0, len(self.service.attempts)
                self.service.jwks_status = 503
                if path:
                    path.unlink()
                with self.later(599):
                    self.pay(authority)
                self.ran = 0
                with self.later(601):
                    for _ in range(3):
                        self.refused(Unavailable, authority=authority)
                self.assertEqual(len(self.service.attempts), attempts + 1)
                self.service.jwks_status = 200

    def test_cache_control_shortens_the_age_of_keys_to_a_minute_at_least(self):
        for header, seconds in (("public, max-age=300", 300), ("max-age=5", 60), ("s-maxage=60", 600), ("max-age=86400", 600)):
            self.service.jwks_headers = {"cache-control": header}
            authority, before = self.make(), self.fetches()
            self.pay(authority)
            for later, fetches in ((seconds - 11, 1), (seconds - 9, 2)):
                with self.later(later):
                    self.pay(authority)
                self.assertEqual(self.fetches() - before, fetches, (header, later))

    def test_one_of_many_calls_reads_old_keys_again(self):
        self.pay()
        with self.later(595), ThreadPoolExecutor(8) as pool:
            for done in [pool.submit(self.pay) for _ in range(16)]:
                done.result()
        self.assertEqual(self.fetches(), 2)

    def test_given_keys_are_not_read_again(self):
        authority = self.make(jwks=self.service.jwks)
        with self.later(1e6):
            self.pay(authority)
        self.assertEqual(self.fetches(), 0)

    def test_a_revoked_key(self):
        # A thief of the key can write any time into a record.
        for revoked in ({"revoked_at": "2999-01-01T00:00:00Z"}, {"revoked_at": "2026-01-01T00:00:00Z"}, {"revoked": True}, {"revoked_at": "x"}):
            authority = self.make(jwks={"keys": [{**self.service.jwks["keys"][0], **revoked}]})
            with self.assertRaises((Denied, Unavailable)):
                self.pay(authority)
            self.assertEqual(self.ran, 0)

    def test_a_key_for_another_purpose(self):
        self.service.jwks = {"keys": [faults.key_id(self.service.private, "webhook")]}
        self.refused(Denied, "unverified", authority=self.make())

    def test_keys_that_cannot_be_read(self):
        for jwks in ("/does/not/exist.json", {"keys": 1}, {"keys": [{"crv": "Ed25519"}]}, "http://127.0.0.1:9/x"):
            self.refused(Unavailable, authority=self.make(jwks=jwks))
        self.assertEqual(self.service.attempts, [])

    def test_settings_that_are_refused(self):
        for options in ({"jwks": "http://authority.example/jwks.json"}, {"timeout": 0}, {"redact_key": b"short"}):
            with self.assertRaises(ValueError):
                self.make(**options)
        for url in ("authority.example", "ftp://authority.example", ""):
            with self.assertRaises(ValueError):
                Authority(url, KEY)

    def test_from_env(self):
        env = {"AGENT_AUTHORITY_URL": self.service.url + "/", "AGENT_AUTHORITY_API_KEY": KEY, "AGENT_AUTHORITY_SUBJECT": SUBJECT}
        with mock.patch.dict("os.environ", env, clear=True):
            self.pay(Authority.from_env(purpose="invoice-settlement"))
        pinned = {**env, "AGENT_AUTHORITY_JWKS": "/does/not/exist.json"}
        with mock.patch.dict("os.environ", pinned, clear=True), self.assertRaises(Unavailable):
            self.pay(Authority.from_env(purpose="invoice-settlement", jwks=None))
        with mock.patch.dict("os.environ", {}, clear=True), self.assertRaisesRegex(ValueError, "AGENT_AUTHORITY_URL"):
            Authority.from_env()


    def test_trust_without_verification_is_logged(self):
        with self.assertLogs("agent_authority", "WARNING") as logged:
            self.make(verify_permits=False)
        self.assertIn("verify_permits", logged.output[0])


class Deadlines(Case):
    def test_a_permit_does_not_open_after_its_end(self):
        self.service.validity = timedelta(milliseconds=1)
        self.refused(Denied, "late")
        self.reported("abandoned")

    def test_the_wall_clock_does_not_matter(self):
        for hours in (-1, 1):
            self.service.skew, self.ran = timedelta(hours=hours), 0
            with mock.patch("time.time", lambda: 0.0):
                self.pay()
            self.assertEqual(self.ran, 1)

    def test_the_end_counts_from_the_first_attempt(self):
        self.service.validity = timedelta(seconds=1)
        self.service.faults = [faults.status(429, "rate_limited", {"retry-after": "1"})]
        self.refused(Denied, "late")

    def test_a_slow_obligation_makes_it_late(self):
        self.service.validity = timedelta(seconds=0.2)
        self.service.verdicts["payment.execute"] = {"decision": "allow", "obligations": ["slow"]}
        self.refused(Denied, "late", authority=self.make(before={"slow": lambda permit: time.sleep(0.3)}))


class Obligations(Case):
    def test_one_without_a_handler(self):
        self.service.verdicts["payment.execute"] = {"decision": "allow", "obligations": ["mask.pii"]}
        self.refused(Denied, "obligation_unsupported")
        self.reported("abandoned")

    def test_built_in_ones(self):
        self.service.verdicts["payment.execute"] = {"decision": "allow", "obligations": ["audit.emit", "reality.warn", "reality.overridden"]}
        self.pay()
        self.assertEqual(self.ran, 1)

    def test_handlers(self):
        self.service.verdicts["payment.execute"] = {"decision": "allow", "obligations": ["first", "last"]}
        order = []
        authority = self.make(before={"first": lambda permit: order.append("first")}, after={"last": lambda permit, result: order.append(result)})
        pay = authority.guard("payment.execute")(lambda amount: order.append("run") or "paid")
        self.assertEqual(pay(1), "paid")
        self.assertEqual(order, ["first", "run", "paid"])
        self.assertEqual(self.service.attempts[0]["supported_obligations"], ["first", "last"])

    def test_handlers_that_fail(self):
        self.service.verdicts["payment.execute"] = {"decision": "allow", "obligations": ["first"]}
        def fail(*_):
            raise OSError("no")
        self.refused(Denied, "obligation_failed", authority=self.make(before={"first": fail}))
        with self.assertRaises(Denied) as found:
            self.pay(self.make(after={"first": fail}))
        self.assertEqual((found.exception.code, self.ran), ("obligation_failed", 1))

    def test_a_permission_for_another_tool(self):
        self.service.verdicts["payment.execute"] = {"decision": "allow"}
        def for_tool(handler, body):
            answer = self.service.decide({**body, "tool_id": "svc:tool:1"}, )
            record = json.loads(answer["record"])
            del record["request"]["tool_id"]
            handler.answer(200, self.service.decide(body, verdict=record["verdict"]) | {"tool_id": "svc:tool:1"})
            return True
        self.service.faults = [for_tool]
        self.refused(Denied, "tool_mismatch")


class Waiting(Case):
    def setUp(self):
        super().setUp()
        self.service.verdicts["payment.execute"] = {"decision": "require_approval", "reason_code": "approval_threshold_breach"}

    def later(self, state, seconds=0.15):
        """Changes the state of pending approvals after some seconds, at the earliest when there is one."""

        def change():
            pending = []
            while not pending and not self.service.over.wait(0.01):
                pending = [approval for approval in list(self.service.approvals.values()) if approval["state"] == "pending"]
                for approval in pending:
                    approval["state"] = state

        timer = threading.Timer(seconds, change)
        timer.daemon = True
        timer.start()

    def test_no_wait(self):
        held = self.refused(Held)
        self.assertEqual((held.approval_id, held.eligible), ("svc:approval:" + "0" * 32, None))
        self.assertEqual(held.digest, held.question.digest)

    def test_approved(self):
        self.later("approved")
        self.pay(wait=timedelta(seconds=5))
        self.assertEqual(self.ran, 1)
        first, second = self.service.attempts
        self.assertNotEqual(first["client_nonce"], second["client_nonce"])
        self.assertEqual(second["approval_id"], "svc:approval:" + "0" * 32)
        self.assertEqual(len(self.service.answers), 2)
        self.reported("executed")

    def test_a_wait_is_logged(self):
        self.later("approved")
        with self.assertLogs("agent_authority", "WARNING") as logged:
            self.pay(wait=5)
        waiting = f"waiting for approval svc:approval:{'0' * 32}: {self.service.url}/receipts/x"
        self.assertEqual([record.getMessage() for record in logged.records], [waiting])

    def test_approved_while_streams_are_refused(self):
        self.service.refuse_streams = 429
        self.later("approved")
        self.pay(wait=5)
        self.assertEqual(self.ran, 1)

    def test_ends(self):
        for state in ("declined", "expired", "void", "used"):
            self.service.approvals.clear()
            self.later(state)
            self.refused(Denied, state, wait=5)

    def test_the_time_out(self):
        begun = time.monotonic()
        self.refused(Held, wait=0.3)
        self.assertTrue(0.25 < time.monotonic() - begun < PROMPT)

    def test_no_eligible_person_ends_the_wait(self):
        self.service.verdicts["payment.execute"]["eligible"] = "none"
        begun = time.monotonic()
        self.assertIn("no registered person", str(self.refused(Held, wait=60)))
        self.assertLess(time.monotonic() - begun, PROMPT)

    def test_a_hold_without_approval_is_asked_again(self):
        self.service.verdicts["payment.execute"] = {"decision": "require_approval", "approval_id": None}
        self.set(self.authority, ask_again=0.05)

        def permit_the_third(handler, body):
            if len(self.service.attempts) > 2:
                self.service.verdicts.clear()

        self.service.faults = faults.Endless([permit_the_third])
        self.pay(wait=5)
        self.service.faults = []
        self.assertEqual(self.ran, 1)
        self.assertGreater(len(self.service.attempts), 2)
        self.service.verdicts["payment.execute"] = {"decision": "require_approval", "approval_id": None}
        self.ran = 0
        self.refused(Held, wait=0.12)

    def test_resume_in_another_process(self):
        held = self.refused(Held)
        text = json.dumps(held.to_json())
        for secret in (KEY, *self.service.answers, self.service.attempts[0]["client_nonce"]):
            self.assertNotIn(secret, text)
        again = Held.from_json(text)
        self.assertEqual((again.question, again.digest), (held.question, held.digest))
        self.assertEqual(str(pickle.loads(pickle.dumps(held))), str(held))
        with self.assertRaises(Held):
            self.make().resume(again).__enter__()
        self.service.approvals[held.approval_id]["state"] = "approved"
        program = (
            "import json, sys\nfrom agent_authority import Authority, Held\n"
            "url, key, held = sys.argv[1:]\n"
            "with Authority(url, key, timeout=10) as authority, authority.resume(Held.from_json(held)) as permit:\n    print(permit.decision.decision)"
        )
        done = subprocess.run([sys.executable, "-c", program, self.service.url, KEY, text], capture_output=True, text=True)
        self.assertEqual((done.stdout, done.stderr), ("allow\n", ""))
        self.assertEqual(self.service.outcomes(), ["executed"])
        with self.assertRaises(Denied) as found:
            self.authority.resume(held).__enter__()
        self.assertEqual(found.exception.code, "used")

    def test_an_approval_that_cannot_be_read(self):
        held = self.refused(Held)
        self.service.refuse_approvals = 503
        with self.assertRaises(Unavailable):
            self.authority.resume(held).__enter__()
        self.service.refuse_approvals = 403
        with self.assertRaises(Held):
            self.authority.resume(held).__enter__()
        self.service.refuse_approvals = 404
        with self.assertRaises(Denied):
            self.authority.resume(held).__enter__()

    def test_a_changed_held_question(self):
        held = self.refused(Held).to_json()
        held["question"]["context"]["amount"] = 9
        with self.assertRaisesRegex(ValueError, "changed"):
            Held.from_json(held)

    def test_a_request_that_a_lost_race_opened_is_cancelled(self):
        held = self.refused(Held)
        self.service.approvals[held.approval_id]["state"] = "approved"
        self.service.faults = [lambda handler, body: self.service.approvals[held.approval_id].update(state="used")]
        with self.assertRaises(Denied) as found:
            self.authority.resume(held).__enter__()
        self.assertEqual(found.exception.code, "used")
        self.authority.flush(5)
        self.assertEqual([approval["state"] for approval in self.service.approvals.values()], ["used", "void"])

    def test_a_race_that_is_lost_while_it_is_decided(self):
        held = self.refused(Held)
        cited = self.service.approvals[held.approval_id]
        cited["state"] = "approved"

        def lost(handler, body):
            cited["state"] = "pending"
            answer = self.service.decide(body)
            cited["state"] = "used"
            handler.answer(200, answer)
            return True

        self.service.faults = [lost]
        with self.assertRaises(Denied) as found:
            self.authority.resume(held, wait=60).__enter__()
        self.assertEqual(found.exception.code, "used")
        self.authority.flush(5)
        self.assertEqual([approval["state"] for approval in self.service.approvals.values()], ["used", "void"])

    def test_fifty_waiters_run_once(self):
        self.service.verdicts["payment.execute"]["approval_id"] = "svc:approval:shared"
        self.service.approvals["svc:approval:shared"] = {"state": "pending"}
        authority = self.make(timeout=60)

        def wait(_):
            try:
                self.pay(authority, wait=120)
            except Denied as error:
                return error.code
        self.later("approved", 0.5)
        with ThreadPoolExecutor(50) as pool:
            outcomes = list(pool.map(wait, range(50)))
        self.assertEqual((self.ran, outcomes.count("used")), (1, 49))


class Stops(Case):
    def test_a_scope_that_lasts_is_watched(self):
        self.set(self.authority, watch_after=0.05)
        with self.assertRaises(Denied) as found, self.authority.permit(Question("payment.execute")) as permit:
            self.service.stop["condition"] = "actor.stop_signal"
            self.assertTrue(permit.stopped.wait(PROMPT))
            permit.raise_if_stopped()
        self.assertEqual((found.exception.code, permit.stop_condition), ("stopped", "actor.stop_signal"))
        self.reported("abandoned")

    def test_watch_begins_at_once(self):
        with self.authority.permit(Question("payment.execute"), watch=True) as permit:
            self.service.stop["condition"] = "delegation.revoked"
            self.assertTrue(permit.stopped.wait(PROMPT))

    def test_silence_and_refusal_are_stops(self):
        for change in ({"stop": {"silent": True}}, {"refuse_streams": 429}, {"refuse_streams": 404}, {"refuse_streams": 401}):
            for name, value in change.items():
                setattr(self.service, name, value)
            self.set(self.authority, heartbeat=0.2)
            with self.authority.permit(Question("payment.execute"), watch=True) as permit:
                self.assertTrue(permit.stopped.wait(PROMPT), change)
            self.assertEqual(permit.stop_condition, "authority.unavailable")

    def test_bytes_without_a_line_are_silence(self):
        self.set(self.authority, heartbeat=0.3)
        opened = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
        for part in (b"1\r\nx\r\n", b""):
            self.service.dribble = self.dribbling(opened if part else b"", part or b"H")
            with self.authority.permit(Question("payment.execute"), watch=True) as permit:
                self.assertTrue(permit.stopped.wait(PROMPT))
            self.assertEqual(permit.stop_condition, "authority.unavailable")

            async def work():
                authority = self.set(self.make(AsyncAuthority), heartbeat=0.3)
                async with authority.permit(Question("payment.execute"), watch=True):
                    await asyncio.sleep(PROMPT)

            with self.assertRaises(Denied) as found:
                asyncio.run(work())
            self.assertEqual(found.exception.code, "stopped")

    def test_silence_while_the_machine_sleeps_counts(self):
        self.service.stop["silent"] = True
        now, watching = time.clock_gettime, lambda: any(path.endswith("watch-stop-conditions") for path in self.service.calls)

        def sleeps():
            return mock.patch("time.clock_gettime", lambda which: now(which) + 31)

        with self.authority.permit(Question("payment.execute"), watch=True) as permit:
            while not watching():
                time.sleep(0.01)
            with sleeps():
                self.assertTrue(permit.stopped.wait(PROMPT))
        self.service.calls.clear()

        async def work():
            async with self.make(AsyncAuthority).permit(Question("payment.execute"), watch=True):
                while not watching():
                    await asyncio.sleep(0.01)
                with sleeps():
                    await asyncio.sleep(PROMPT)

        with self.assertRaises(Denied) as found:
            asyncio.run(work())
        self.assertEqual(found.exception.code, "stopped")

    def dribbling(self, opened, part):
        def stream(handler):
            handler.wfile.write(opened)
            faults.dribble(part)(handler)

        return stream

    def test_a_short_scope_opens_no_stream(self):
        self.pay()
        time.sleep(0.05)
        self.assertFalse([path for path in self.service.calls if "watch" in path])

    def test_the_stream_ends_with_the_scope(self):
        with self.authority.permit(Question("payment.execute"), watch=True) as permit:
            time.sleep(0.2)
        ends = time.monotonic() + PROMPT
        while "agent-authority-stop" in [thread.name for thread in threading.enumerate()]:
            self.assertLess(time.monotonic(), ends)
            time.sleep(0.01)
        self.assertFalse(permit.stopped.is_set())


class Reports(Case):
    def test_a_failure_has_only_the_type(self):
        for options, detail in (({}, "OSError"), ({"error_messages": True}, "OSError: secret")):
            authority = self.make(**options)
            with self.assertRaises(OSError), authority.permit(Question("payment.execute")):
                raise OSError("secret")
            authority.flush(5)
            self.assertEqual((self.service.reports[-1]["outcome"], self.service.reports[-1]["detail"]), ("failed", detail))

    def test_it_is_repeated_and_changes_no_result(self):
        self.service.report_faults = [503, 503, 500, b"<html>", b"{}"]
        pay = self.authority.guard("payment.execute")(lambda: "paid")
        self.assertEqual(pay(), "paid")
        self.reported("executed")

    def test_a_permit_is_used_once(self):
        scope = self.authority.permit(Question("payment.execute"))
        with scope:
            pass
        with self.assertRaises(RuntimeError):
            scope.__enter__()


class Shadow(Case):
    def test_it_runs_whatever_the_answer(self):
        authority = self.make(shadow=True)
        self.pay(authority)
        self.service.verdicts["payment.execute"] = {"decision": "deny", "reason_code": "x"}
        permit = self.pay(authority)
        self.assertEqual((self.ran, permit.decision, permit.refusal.code), (2, None, "x"))
        self.set(authority, timeout=0.1)
        self.service.faults = faults.Endless([faults.status(503)])
        self.pay(authority)
        self.assertEqual(self.ran, 3)
        self.service.faults = []
        authority.flush(5)
        self.assertEqual([report["detail"] for report in self.service.reports if report["outcome"] == "executed"], ["shadow"])

    def test_a_production_key_needs_a_word_more(self):
        for key in ("svc_prod_0_1_2", "x"):
            with self.assertRaises(ValueError):
                Authority(self.service.url, key, shadow=True)
            Authority(self.service.url, key, shadow=True, shadow_in_production=True)


class Async(Case):
    def run_async(self, work, **options):
        async def main():
            authority = self.make(AsyncAuthority, **options)
            try:
                return await work(authority)
            finally:
                await authority.close()

        return asyncio.run(main())

    def test_allow_deny_and_faults(self):
        async def work(authority):
            async with authority.permit(Question("payment.execute")) as permit:
                self.assertIs(current_permit(), permit)
                self.ran += 1
            self.service.verdicts["payment.execute"] = {"decision": "deny", "reason_code": "x"}
            with self.assertRaises(Denied):
                await authority.decide(Question("payment.execute"))
            self.set(authority, timeout=0.2)
            for fault in (faults.cut_after, faults.cut_within, faults.status(503), faults.status(500), faults.delay(0.3)):
                self.service.verdicts.clear()
                self.service.faults = faults.Endless([fault])
                with self.assertRaises(Unavailable):
                    async with authority.permit(Question("payment.execute")):
                        self.ran += 1
                self.service.faults = []
            self.assertIsNone(current_permit())

        self.run_async(work)
        self.assertEqual(self.ran, 1)
        outcomes = self.service.outcomes()
        self.assertEqual((outcomes.count("executed"), len(outcomes)), (1, len(self.service.decisions)))

    def test_a_stop_cancels_the_body_within_a_second(self):
        async def work(authority):
            self.set(authority, watch_after=0.05)
            times = []

            def stop():
                times.append(time.monotonic())
                self.service.stop["condition"] = "actor.stop_signal"

            threading.Timer(0.2, stop).start()
            with self.assertRaises(Denied) as found:
                async with authority.permit(Question("payment.execute")):
                    await asyncio.sleep(60)
            self.assertEqual(found.exception.code, "stopped")
            self.assertLess(time.monotonic() - times[0], PROMPT)
            await asyncio.sleep(0)  # the task itself is not cancelled

        self.run_async(work)
        self.assertEqual(self.service.outcomes(), ["abandoned"])

    def test_a_stopped_task_that_is_also_cancelled(self):
        async def body(authority):
            async with authority.permit(Question("payment.execute"), watch=True) as permit:
                self.service.stop["condition"] = "actor.stop_signal"
                try:
                    await asyncio.sleep(10)
                except asyncio.CancelledError:
                    asyncio.current_task().cancel()
                    raise

        async def work(authority):
            task = asyncio.create_task(body(authority))
            with self.assertRaises(asyncio.CancelledError):
                await task

        if sys.version_info >= (3, 11):
            self.run_async(work)
            self.assertEqual(self.service.outcomes(), ["abandoned"])

    def test_a_body_that_ignores_the_stop(self):
        async def work(authority):
            async with authority.permit(Question("payment.execute"), watch=True) as permit:
                self.service.stop["condition"] = "actor.stop_signal"
                while not permit.stopped.is_set():
                    try:
                        await asyncio.sleep(0.01)
                    except asyncio.CancelledError:
                        pass
            await asyncio.sleep(0.01)

        self.run_async(work)
        self.assertEqual(self.service.outcomes(), ["abandoned"])

    def test_cancelled_while_deciding(self):
        async def work(authority):
            self.service.faults = [faults.delay(0.3)]
            async def enter():
                async with authority.permit(Question("payment.execute")):
                    self.ran += 1
            task = asyncio.create_task(enter())
            while not self.service.answers:
                await asyncio.sleep(0.01)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        self.run_async(work)
        self.assertEqual((self.ran, self.service.outcomes()), (0, ["abandoned"]))

    def test_waits_resume_and_two_loops(self):
        self.service.verdicts["payment.execute"] = {"decision": "require_approval"}
        authority = self.make(AsyncAuthority)

        async def hold():
            with self.assertRaises(Held) as found:
                await authority.permit(Question("payment.execute")).__aenter__()
            return found.exception

        held = asyncio.run(hold())
        self.service.approvals[held.approval_id]["state"] = "approved"

        async def resume():
            async with authority.resume(held) as permit:
                return permit.decision.decision

        self.assertEqual(asyncio.run(resume()), "allow")


if __name__ == "__main__":
    unittest.main()
