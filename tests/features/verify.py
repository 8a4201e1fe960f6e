"""Verifies an evidence pack, an evidence bundle or a replay proof offline, by EVIDENCE.md.

Usage: python verify.py FILE [--jwks FILE] [--checkpoint-key VKEY] [--require-trust]
Needs the Python library (sdk/python). Exit code: 0 valid, 1 invalid, 2 unreadable.
"""
import argparse
import sys

from agent_authority.evidence import Invalid, Unreadable, read_keys, verify_document


def main():
    arguments = argparse.ArgumentParser(allow_abbrev=False)
    arguments.add_argument("file")
    arguments.add_argument("--jwks")
    arguments.add_argument("--checkpoint-key")
    arguments.add_argument("--require-trust", action="store_true")
    asked = arguments.parse_args()
    try:
        keys = None if asked.jwks is None else read_keys(asked.jwks)
        found = verify_document(asked.file, keys, asked.checkpoint_key)
    except Invalid as error:
        print(f"invalid: {error}")
        return 1
    except Unreadable as error:
        print(f"unreadable: {error}")
        return 2
    print(found)
    return int(asked.require_trust and found != "valid")


if __name__ == "__main__":
    sys.exit(main())
