"""Changes of a genuine answer. A permit with any of them must not be accepted."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random

from answer import GrpcWeb, Rest

Answer = Rest | GrpcWeb
LONG_AGO, FAR_AHEAD = "2020-01-01T00:00:00Z", "2099-01-01T00:00:00Z"


def change_byte(name: str) -> Callable[[Answer, Random], None]:
    """Changes one letter or digit of a text to another."""

    def change(answer: Answer, random: Random) -> None:
        text = answer.get(name) or ""
        places = [at for at, letter in enumerate(text) if letter.isascii() and letter.isalnum()]
        at = random.choice(places)
        others = "0123456789" if text[at].isdigit() else "abcdefghijklmnopqrstuvwxyz"
        letter = random.choice([other for other in others if other != text[at].lower()])
        answer.set(name, text[:at] + letter + text[at + 1 :])

    return change


def set_to(**values) -> Callable[[Answer, Random], None]:
    def change(answer: Answer, _: Random) -> None:
        for name, value in values.items():
            answer.set(name.replace("__", "."), value)

    return change


def edit_record(edit: Callable[[dict], None]) -> Callable[[Answer, Random], None]:
    """Changes a member of the record, which stays canonical; digest and signature stay."""

    def change(answer: Answer, _: Random) -> None:
        record = json.loads(answer.get("record"))
        edit(record)
        text = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        answer.set("record", text)

    return change


CHANGES: dict[str, Callable[[Answer, Random], None]] = {
    "byte_of_record": change_byte("record"),
    "byte_of_signature": change_byte("evidence_pack.signature.value"),
    "byte_of_kid": change_byte("evidence_pack.signature.kid"),
    "byte_of_digest": change_byte("evidence_pack.record_digest"),
    "byte_of_salt": change_byte("context_salt"),
    "byte_of_decision_id": change_byte("decision_id"),
    "no_record": set_to(record=None),
    "no_salt": set_to(context_salt=None),
    "no_decision": set_to(decision=None),
    "unknown_decision": set_to(decision="perhaps"),
    "says_allow": set_to(decision="allow", approval_id=None, valid_until=FAR_AHEAD),
    "expired": set_to(valid_until=LONG_AGO),
    "no_valid_until": set_to(valid_until=None),
    "other_obligation": set_to(obligations=["audit.emit", "mask.pii"]),
    "record_of_other_action": edit_record(lambda record: record["request"].update(action="x.y")),
}
