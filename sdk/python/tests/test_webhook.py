"""The shared table of good and bad deliveries, and tests that are specific to this library."""

import json
import os
import unittest
from pathlib import Path

from agent_authority import WebhookError, verify_webhook

# The table is in this repository, or next to a copy of this library that is tested elsewhere.
VECTORS = os.environ.get("WEBHOOK_VECTORS", Path(__file__).parents[2] / "vectors" / "webhooks.json")
TABLE = json.loads(Path(VECTORS).read_text("utf-8"))
VALID = next(case for case in TABLE["cases"] if case["name"] == "all suites")


def judged(case, headers=None, **options):
    options = {**TABLE["options"], **case["options"], "now": case["now"], **options}
    pairs = [(name, value) for name, value in case["headers"]]
    try:
        event = verify_webhook(case["body"].encode(), headers or pairs, **options)
    except WebhookError as error:
        assert str(error) and all(word in str(error) for word in case.get("mentions", []))
        return error.code
    assert event == json.loads(case["body"])
    return "valid"


class VerifyWebhook(unittest.TestCase):
    def test_table(self):
        self.assertGreater(len(TABLE["cases"]), 100)
        for case in TABLE["cases"]:
            with self.subTest(case["name"]):
                self.assertEqual(judged(case), case["expect"])

    def test_headers_as_a_mapping(self):
        self.assertEqual(judged(VALID, dict(VALID["headers"])), "valid")

    def test_headers_that_are_no_text(self):
        for name in ("webhook-id", "signature", "signature-input", "content-type"):
            headers = {**dict(VALID["headers"]), name: "\udcff"}
            self.assertIn(judged(VALID, headers), ("malformed", "signature"))

    def test_deep_json(self):
        deep = "W1tb" * 20000
        headers = {"webhook-jwt": f"{deep}.{deep}.AAAA"}
        self.assertEqual(judged(VALID, headers), "malformed")

    def test_options_that_are_no_options(self):
        for options in ({"accept": ["rsa"]}, {"tolerance": -1}, {"tolerance": float("nan")}, {"secrets": "whsec_"}):
            self.assertEqual(judged(VALID, **options), "configuration")
        # The machine's time is years after the time in the table.
        self.assertEqual(judged(VALID, now=None), "time")

    def test_a_key_of_that_name_twice(self):
        key = TABLE["options"]["jwks"]["keys"][0]
        self.assertEqual(judged(VALID, jwks={"keys": [key, key]}), "unknown_key")


if __name__ == "__main__":
    unittest.main()
