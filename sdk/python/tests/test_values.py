"""Canonical JSON, values, questions, and the guard's arguments."""

import asyncio
import dataclasses
import datetime
import enum
import hashlib
import hmac
import json
import logging
import random
import unittest
import uuid
from decimal import Decimal

import service as faults
from test_client import Case

from agent_authority import AsyncAuthority, Denied, Held, Question, current_permit
from agent_authority.jcs import canonical, parse
from agent_authority.values import freeze, freeze_amount

logging.getLogger("agent_authority").setLevel(logging.CRITICAL)


class Canonical(unittest.TestCase):
    def test_the_example_of_rfc_8785(self):
        value = {
            "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
            "string": "\u20ac$\u000f\nA'B\"\\\\\"/",
            "literals": [None, True, False],
        }
        expected = (
            '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
            '"string":"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
        )
        self.assertEqual(canonical(value), expected.encode())

    def test_names_are_sorted_by_utf_16(self):
        names = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
        self.assertEqual(list(parse(canonical(dict.fromkeys(names)))), ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"])

    def test_numbers_of_rfc_8785_appendix_b(self):
        for number, text in ((0.0, "0"), (-0.0, "0"), (5e-324, "5e-324"), (-5e-324, "-5e-324"),
                             (1.7976931348623157e308, "1.7976931348623157e+308"), (9007199254740992.0, "9007199254740992"),
                             (295147905179352830000.0, "295147905179352830000"), (9.999999999999997e22, "9.999999999999997e+22"),
                             (1e23, "1e+23"), (1.0000000000000001e23, "1.0000000000000001e+23"), (999999999999999700000.0, "999999999999999700000"),
                             (999999999999999900000.0, "999999999999999900000"), (1e21, "1e+21"), (9.999999999999997e-7, "9.999999999999997e-7"),
                             (0.000001, "0.000001"), (333333333.3333332, "333333333.3333332"), (-0.0000033333333333333333, "-0.0000033333333333333333"),
                             (1424953923781206.2, "1424953923781206.2")):  # fmt: skip
            self.assertEqual(canonical(number).decode(), text)

    def test_it_agrees_with_another_implementation(self):
        try:
            import rfc8785
        except ImportError:
            self.skipTest("rfc8785 is not installed")
        dice = random.Random(8785)
        for _ in range(2000):
            number = dice.choice([dice.random() * 10 ** dice.randint(-30, 30), dice.randint(-(2**53) + 1, 2**53 - 1)])
            name = "".join(chr(dice.choice([dice.randint(0, 0xD7FF), dice.randint(0xE000, 0x10FFFF)])) for _ in range(3))
            value = {name: [number, None, name], "a": {}, "b": [], "c": {name: True}}
            self.assertEqual(canonical(value), rfc8785.dumps(value))

    def test_what_is_refused(self):
        for value in (float("nan"), float("inf"), 2**53, "\ud800", {1: 2}, {"x": object()}, {"\udfff": 1}, b""):
            with self.assertRaises(ValueError):
                canonical(value)
        for text in ("NaN", '{"a":1,"a":2}', "", b"\xff"):
            with self.assertRaises(ValueError):
                parse(text)


class Color(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Payee:
    name: str
    limit: Decimal


class Values(unittest.TestCase):
    def test_forms(self):
        east = datetime.timezone(datetime.timedelta(hours=2))
        for value, expected in (
            (Decimal("1200.50"), 1200.5), (Decimal("1200.00"), 1200), (Decimal("1E+3"), 1000), (0.1, 0.1), (True, True),
            (datetime.datetime(2026, 1, 5, 12, 30, tzinfo=east), "2026-01-05T10:30:00Z"),
            (datetime.datetime(2026, 1, 5, 12, 30, 0, 120000, tzinfo=east), "2026-01-05T10:30:00.12Z"),
            (datetime.date(2026, 1, 5), "2026-01-05"), (b"abc", {"sha256": hashlib.sha256(b"abc").hexdigest()}),
            (Color.RED, "red"), (uuid.UUID(int=1), str(uuid.UUID(int=1))), ((1, [None]), [1, [None]]),
            (Payee("x", Decimal("1.5")), {"name": "x", "limit": 1.5}),
        ):  # fmt: skip
            self.assertEqual(freeze(value), expected)
        for value in (datetime.datetime(2026, 1, 5), datetime.time(1), datetime.timedelta(1), {1}, {1: 2}, object(), Decimal("NaN"),
                      Decimal("1.00001"), 2**53, float("inf"), "\ud800", "\0", Payee, 1j):  # fmt: skip
            with self.assertRaises(ValueError, msg=repr(value)):
                freeze(value)

    def test_no_part_of_a_value_is_left_out(self):
        class More(Payee):
            pass

        class Text(str):
            def __str__(self):
                return "other"

        more = More("x", Decimal(1))
        freeze(more)
        more.account = "DE02"
        with self.assertRaisesRegex(ValueError, "account"):
            freeze(more)
        self.assertEqual(freeze(Text("DE02")), "DE02")

    def test_models(self):
        try:
            import pydantic
        except ImportError:
            self.skipTest("pydantic is not installed")

        class Account(pydantic.BaseModel, extra="allow"):
            iban: str = pydantic.Field(exclude=True)
            amount: int

            @pydantic.field_serializer("amount")
            def hide(self, value: int) -> str:
                return "***"

        class Accounts(pydantic.RootModel):
            root: list[Account]

        asked = {"iban": "DE02", "amount": 5, "other": "x"}
        self.assertEqual(freeze(Accounts([Account(**asked)])), [asked])

    def test_amounts(self):
        for value, expected in (("1200.00", 1200), ("0.1", 0.1), ("-5.0001", -5.0001), (7, 7), (Decimal("0.30"), 0.3), ("9007199254740991", 2**53 - 1)):
            self.assertEqual(freeze_amount(value), expected)
        for value in (0.1, 1.0, True, "1.00001", "1e3", "+1", "1,5", " 1", "01", ".5", "1.", "", "\u0661", "9007199254740992",
                      "9007199254740991.5", "4503599627370497.1234", "1" * 400, None, "NaN", Decimal("Infinity")):  # fmt: skip
            with self.assertRaises(ValueError, msg=repr(value)):
                freeze_amount(value)

    def test_a_question(self):
        context = {"amount": "12.50", "gone": None, "list": [1]}
        question = Question("a.b", subject="svc:agent:acme:x", context=context, action_declaration={"effect_class": None}, supported_obligations=["b", "a", "b"])
        context["list"].append(2)
        self.assertEqual(question.context, {"amount": 12.5, "list": [1]})
        self.assertEqual((question.action_declaration, question.supported_obligations, question.tenant_id), (None, ("a", "b"), "svc:tenant:acme"))
        self.assertEqual(Question.from_json(json.loads(json.dumps(question.to_json()))), question)
        self.assertEqual(question.replace(justification="x").digest, question.digest)
        self.assertNotEqual(question.replace(tool_id="x").digest, question.digest)
        for members in ({}, {"action": 1}, {"action": "a", "other": 1}):
            with self.assertRaises(ValueError):
                Question.from_json(members)


class Guard(Case):
    """``guard``: the function gets what was asked."""

    def arguments(self):
        return self.service.attempts[-1]["context"]["arguments"]

    def test_all_arguments_are_asked(self):
        @self.authority.guard("payment.execute", amount=lambda a: a["amount"], currency="EUR", context=lambda a: {"jurisdiction": a["iban"][:2]}, resource_id=lambda a: a["iban"])
        def pay(iban: str, amount: Decimal, note: str = "none", *rest: int, **more: object) -> str:
            "Pays."
            return f"{iban} {amount} {note} {rest} {more}"

        self.assertEqual(pay("DE02", Decimal("12.50"), "n", 1, x=[1]), "DE02 12.50 n (1,) {'x': [1]}")
        self.assertEqual(self.arguments(), {"iban": "DE02", "amount": 12.5, "note": "n", "rest": [1], "x": [1]})
        body = self.service.attempts[-1]
        self.assertEqual(body["context"], {"amount": 12.5, "currency": "EUR", "jurisdiction": "DE", "arguments": self.arguments()})
        self.assertEqual((body["resource_id"], body["purpose"], pay.__name__, pay.__doc__), ("DE02", "invoice-settlement", "pay", "Pays."))
        pay(amount=Decimal(1), iban="DE02")
        self.assertEqual(self.arguments(), {"iban": "DE02", "amount": 1, "note": "none", "rest": []})
        with self.assertRaises(TypeError):
            pay()

    def test_a_mapping_that_fails_is_a_denial(self):
        def fail(_):
            raise KeyError("x")

        for options in ({"context": fail}, {"amount": lambda a: 1.5}, {"context": {"arguments": {}}}, {"context": lambda a: 1}, {"resource_id": fail}):
            guarded = self.authority.guard("payment.execute", **options)(self.run_once)
            with self.assertRaises(Denied) as found:
                guarded(1)
            self.assertEqual((found.exception.code, self.ran), ("invalid_question", 0))
        for value in (object(), {1}, 2**60, datetime.datetime(2026, 1, 1), lambda: 0):
            with self.assertRaises(Denied):
                self.authority.guard("payment.execute")(self.run_once)(value)
        self.assertEqual((self.ran, self.service.attempts), (0, []))

    def run_once(self, value):
        self.ran += 1
        return value

    def test_a_later_change_does_not_reach_the_function(self):
        order = {"amount": 1}
        self.service.faults = [lambda handler, body: order.update(amount=1_000_000)]
        self.assertEqual(self.authority.guard("payment.execute")(self.run_once)(order), {"amount": 1})
        self.assertEqual(self.arguments(), {"value": {"amount": 1}})

    def test_a_change_of_the_copy_is_a_denial(self):
        class Order(dict):
            def __deepcopy__(self, memo):
                return self  # an object that can't be copied apart

        order = Order(amount=1)
        self.service.faults = [lambda handler, body: order.update(amount=1_000_000)]
        with self.assertRaises(Denied) as found:
            self.authority.guard("payment.execute")(self.run_once)(order)
        self.assertEqual((found.exception.code, self.ran), ("arguments_changed", 0))

    def test_redact_and_exclude(self):
        key = b"0123456789abcdef"
        authority = self.make(redact_key=key)

        @authority.guard("payment.execute", redact=["pin"], exclude=["session"])
        def pay(session, pin):
            return pin

        self.assertEqual(pay(object(), "1234"), "1234")
        self.assertEqual(self.arguments(), {"pin": {"hmac": hmac.new(key, b'"1234"', "sha256").hexdigest()}})
        with self.assertRaises(ValueError):
            self.authority.guard("payment.execute", redact=["value"])(self.run_once)
        with self.assertRaises(TypeError):
            authority.guard("payment.execute", redact=["pni"])(self.run_once)
        with self.assertRaises(TypeError):
            authority.guard("payment.execute", redact="pin")

    def test_functions_that_run_later_are_refused(self):
        def generate():
            yield 1

        async def agenerate():
            yield 1

        for function in (generate, agenerate):
            with self.assertRaises(TypeError):
                self.authority.guard("payment.execute")(function)

        async def later():
            self.ran += 1

        with self.assertRaises(TypeError):
            self.authority.guard("payment.execute")(lambda: later())()

        def run_later(kind):
            self.assertIsNotNone(current_permit())
            return kind()

        async def arun_later(kind):
            return run_later(kind)

        for kind in ("generate", "agenerate"):
            made = {"generate": generate, "agenerate": agenerate}[kind]
            with self.assertRaisesRegex(TypeError, "without a permission"):
                self.authority.guard("payment.execute", exclude=["kind"])(run_later)(made)
            with self.assertRaisesRegex(TypeError, "without a permission"):
                asyncio.run(self.make(AsyncAuthority).guard("payment.execute", exclude=["kind"])(arun_later)(made))
        self.authority.flush(10)
        self.assertEqual(self.service.outcomes()[0], "failed")
        self.assertEqual(self.ran, 0)

    def test_async_functions_of_either_authority(self):
        for kind in (AsyncAuthority, type(self.authority)):
            authority = self.make(kind)

            @authority.guard("payment.execute", purpose="invoice-settlement")
            async def pay(amount: int) -> int:
                self.assertTrue(current_permit().decision.permits)
                return amount

            self.assertTrue(asyncio.iscoroutinefunction(pay))
            self.assertEqual(asyncio.run(pay(5)), 5)
            self.service.verdicts["payment.execute"] = {"decision": "deny", "reason_code": "x"}
            with self.assertRaises(Denied):
                asyncio.run(pay(5))
            self.service.verdicts.clear()

    def test_resume(self):
        self.service.verdicts["payment.execute"] = {"decision": "require_approval"}
        guarded = self.authority.guard("payment.execute")(self.run_once)
        with self.assertRaises(Held) as found:
            guarded({"amount": 1})
        held = Held.from_json(json.dumps(found.exception.to_json()))
        self.service.approvals[held.approval_id]["state"] = "approved"
        with self.assertRaises(Denied) as changed:
            guarded.resume(held, {"amount": 2})
        self.assertEqual((changed.exception.code, self.ran), ("arguments_changed", 0))
        again = self.make(before={"new": lambda permit: None}).guard("payment.execute")(self.run_once)
        self.assertEqual(again.resume(held, {"amount": 1}), {"amount": 1})
        with self.assertRaises(Denied) as used:
            guarded.resume(held, {"amount": 1})
        self.assertEqual((used.exception.code, self.ran), ("used", 1))

    def test_shadow_runs_even_a_question_that_cannot_be_made(self):
        guarded = self.make(shadow=True).guard("payment.execute")(self.run_once)
        guarded(object())
        self.assertEqual(self.ran, 1)
        with self.assertRaises(ValueError):
            self.authority.guard("payment.execute", shadow=True)


class Verify(Case):
    """``verify`` for permissions of somebody else."""

    def test_a_tools_own_server(self):
        question = Question("payment.execute", context={"arguments": {"iban": "DE02"}}, resource_id="r")
        decision = self.authority.decide(question)
        proof = json.loads(json.dumps(decision.proof()))
        call = Question("payment.execute", context={"arguments": {"iban": "DE02"}}, resource_id="r")
        verified = self.authority.verify(proof, call, tenant_id="svc:tenant:acme")
        self.assertEqual((verified.decision_id, verified.subject, verified.purpose), (decision.decision_id, faults.SUBJECT, "invoice-settlement"))
        self.assertEqual(self.authority.verify(decision, call).decision_id, decision.decision_id)
        for other in (call.replace(action="payment.cancel"), call.replace(context={}), call.replace(resource_id=None), call.replace(subject="svc:agent:acme:y"), call.replace(tool_id="t")):
            with self.assertRaises(Denied):
                self.authority.verify(proof, other, tenant_id="svc:tenant:acme")
        for changed in ({"record": "{}"}, {"signature": None}, {"context_salt": None}, {"signature": {**proof["signature"], "kid": "x"}}):
            with self.assertRaises(Denied):
                self.authority.verify({**proof, **changed}, call, tenant_id="svc:tenant:acme")
        with self.assertRaises(Denied):
            self.authority.verify(proof, call, tenant_id="svc:tenant:other")

    def test_a_permission_for_another_tool(self):
        question = Question("payment.execute")
        verdict = json.loads(self.authority.decide(question).record)["verdict"]
        body = self.service.attempts[-1]
        answer = self.service.decide(body, verdict={**verdict, "tool_id": "svc:tool:1"})
        proof = {"record": answer["record"], "signature": answer["evidence_pack"]["signature"], "context_salt": answer["context_salt"]}
        with self.assertRaisesRegex(Denied, "another tool"):
            self.authority.verify(proof, question, tenant_id="svc:tenant:acme")

    def test_a_revoked_key(self):
        from agent_authority import KeySet, verify_permit

        question = Question("payment.execute")
        decision = self.authority.decide(question)
        keys = KeySet({"keys": [{**self.service.jwks["keys"][0], "revoked_at": "2999-01-01T00:00:00Z"}]})
        with self.assertRaisesRegex(Denied, "revoked"):
            verify_permit(decision.proof(), question, keys, "svc:tenant:acme")

    def test_after_its_end(self):
        from agent_authority import KeySet, verify_permit

        decision, keys = self.authority.decide(Question("payment.execute")), KeySet(self.service.jwks)
        with self.assertRaises(Denied) as found:
            verify_permit(decision.proof(), Question("payment.execute"), keys, "svc:tenant:acme", now=4e9)
        self.assertEqual(found.exception.code, "late")

    def test_evidence(self):
        from agent_authority.evidence import Invalid, Unreadable

        with self.assertRaises(Unreadable):
            self.authority.verify({"kind": "other"})
        with self.assertRaises(Unreadable):
            self.authority.verify({"record": "{}"})
        with self.assertRaises(Invalid):
            self.authority.verify({"kind": "svc.evidence.pack.v1"})


if __name__ == "__main__":
    unittest.main()
