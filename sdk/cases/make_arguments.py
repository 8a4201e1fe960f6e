"""Writes arguments.json: generated calls of a tool, and the digest of the arguments of each.

The digests come from the package rfc8785, so that the libraries are not only equal to each other.
A value that JSON lacks is an object with one member: `decimal`, `datetime` or `date` with its text,
`bytes` with hex, `double` with its text.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from random import Random
from typing import Any

import rfc8785

COUNT = 500
REDACT_KEY = "a key of the cases, not a secret"
LARGEST = 2**53 - 1
TEXTS = [
    "", "DE02120300000000202051", "Müller & Söhne", "日本語", "a\nb\tc", '"quoted" \\ back', "\u0001\u001f\u007f",
    "€", "\u20ac\u0308", "𝔘𝔫𝔦", "😀", "</script>", "\u2028\u2029", "e\u0301", "\ufeff", "ﬃ", "0012", "null", "1e5",
]
NAMES = ["iban", "payee", "note", "ort", "größe", "€", "\ufb33", "😀", "a", "A", "_", "1", "10", "9", "z" * 40]
DOUBLES = [
    0.1, 0.5, 1.5, 1e-7, 123456789.125, 5e-324, 1e-6, 9007199254740991.0, 0.000001, 333333333.3333333, 4.5, 2e-3,
    -1e-9,
]
REFUSED = [
    {"double": "nan"}, {"double": "inf"}, {"decimal": "0.12345"}, {"decimal": "90071992547409.9199"},
    {"decimal": "123456789012345.6789"}, {"integer": str(LARGEST + 1)}, {"integer": str(-LARGEST - 1)},
    {"surrogate": "d800"},
]


def decimal(random: Random) -> dict[str, str]:
    whole, places = random.choice([0, 1, 7, 1200, 99999, 10**9 - 1]), random.randrange(5)
    digits = "".join(random.choice("0123456789") for _ in range(places))
    sign = random.choice(["", "", "-"])
    text = f"{whole}.{digits}" if places else str(whole)
    return {"decimal": sign + text if text.strip("0.") else text}


def moment(random: Random) -> dict[str, str]:
    zone = timezone(timedelta(minutes=random.choice([0, 60, 120, -330, 345])))
    ticks = random.choice([0, 100_000, 120_000, 7_000, 999_000])
    at = datetime(2026, 1, 1, tzinfo=zone) + timedelta(seconds=random.randrange(10**8), microseconds=ticks)
    return {"datetime": at.isoformat()}


def value(random: Random, depth: int) -> Any:
    makers = [
        lambda: random.choice([None, True, False]),
        lambda: random.choice([0, 1, -1, 42, LARGEST, -LARGEST, random.randrange(10**9)]),
        lambda: random.choice(TEXTS),
        lambda: decimal(random),
        lambda: moment(random),
        lambda: {"date": f"2026-{random.randrange(1, 13):02}-{random.randrange(1, 29):02}"},
        lambda: {"bytes": random.randbytes(random.randrange(40)).hex()},
        lambda: {"double": repr(random.choice([*DOUBLES, random.uniform(-1e6, 1e6)]))},
    ]
    if depth:
        makers += [
            lambda: [value(random, depth - 1) for _ in range(random.randrange(4))],
            lambda: {"object": members(random, depth - 1)},
        ]
    return random.choice(makers)()


def members(random: Random, depth: int) -> dict[str, Any]:
    return {name: value(random, depth) for name in random.sample(NAMES, random.randrange(5))}


def json_of(tagged: Any) -> Any:
    """Returns the JSON value that a library makes of a value."""
    if isinstance(tagged, list):
        return [json_of(item) for item in tagged]
    if not isinstance(tagged, dict):
        return tagged
    [(kind, content)] = tagged.items()
    if kind == "object":
        return {name: json_of(member) for name, member in content.items()}
    if kind == "bytes":
        return {"sha256": hashlib.sha256(bytes.fromhex(content)).hexdigest()}
    if kind == "datetime":
        utc = datetime.fromisoformat(content).astimezone(UTC)
        text = utc.strftime("%Y-%m-%dT%H:%M:%S.%f").rstrip("0").rstrip(".")
        return f"{text}Z"
    return content if kind == "date" else float(content)


def generated(random: Random) -> dict[str, Any]:
    arguments = {name: value(random, 3) for name in random.sample(NAMES, random.randrange(1, 6))}
    redact = sorted(name for name in arguments if random.random() < 0.1)
    plain = {name: json_of(argument) for name, argument in arguments.items()}
    for name in redact:
        code = hmac.new(REDACT_KEY.encode(), rfc8785.dumps(plain[name]), "sha256").hexdigest()
        plain[name] = {"hmac": code}
    digest = hashlib.sha256(rfc8785.dumps(plain)).hexdigest()
    return {"arguments": arguments, "redact": redact, "sha256": digest}


def main() -> None:
    random = Random(8785)
    table = {
        "redact_key": REDACT_KEY,
        "calls": [generated(random) for _ in range(COUNT)],
        "refused": REFUSED,
    }
    lines = [json.dumps(call, ensure_ascii=True) for call in table["calls"]]
    text = json.dumps(table | {"calls": []}, indent=1)
    calls = ",\n  ".join(lines)
    text = text.replace('"calls": []', f'"calls": [\n  {calls}\n ]')
    Path(__file__).with_name("arguments.json").write_text(f"{text}\n")


if __name__ == "__main__":
    main()
