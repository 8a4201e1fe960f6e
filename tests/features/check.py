"""Runs both verifiers over a corpus, and reports wrong results and differences between the two.

Usage: python check.py [FOLDER] [--sweep] [--flips N]
FOLDER has a manifest.json as make_corpus.py writes it. --sweep adds every tampered version of three good
files; --flips N changes N single bytes of a good bundle, each at a random place.
"""
import argparse
import json
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tamper import tampered

HERE = Path(__file__).parent
VERIFIERS = ([sys.executable, HERE / "verify.py"], ["node", HERE / "verify.mjs"])


def ask(folder: Path, file: Path, case: dict) -> list[tuple[int, str]]:
    """Returns the exit code and output of both verifiers."""
    how = []
    if "jwks" in case:
        how += ["--jwks", folder / case["jwks"]]
    if "checkpoint_key" in case:
        how += ["--checkpoint-key", case["checkpoint_key"]]
    if case.get("require_trust"):
        how.append("--require-trust")
    runs = [subprocess.run([*verifier, file, *how], capture_output=True, encoding="utf-8") for verifier in VERIFIERS]
    # A traceback is not a verdict, although its exit code looks like one.
    return [(run.returncode, run.stdout.strip() if not run.stderr else "failed: " + run.stderr) for run in runs]


def differences(answers: list[tuple[int, str]]) -> list[str]:
    """Compares which member is invalid, not the text after it, which differs. An unreadable file has no member."""
    said = [(code, output.split(": ")[:1 if code == 2 else 2] if code else output) for code, output in answers]
    return [] if said[0] == said[1] else ["the two differ"]


def check_case(folder: Path, case: dict) -> list[str]:
    answers = ask(folder, folder / case["file"], case)
    wrong = differences(answers)
    for code, output in answers:
        if code != case["exit"] or output != case.get("output", output):
            wrong.append(f"{code} {output}")
        if "member" in case and not output.startswith(f"invalid: {case['member']}: "):
            wrong.append(f"names another member: {output}")
    return wrong


def check_refused(folder: Path, data: bytes, how: dict) -> list[str]:
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(data)
        file.flush()
        answers = ask(folder, Path(file.name), how)
    wrong = differences(answers)
    if not all(output.startswith(("invalid: ", "unreadable: ")) for _, output in answers):
        wrong.append("not refused")
    return [*wrong, str(answers)] if wrong else []


def flipped(document: dict, text: str, count: int):
    """Yields changes of one byte that change the file's meaning. Prints how many others do not."""
    data, chance, equal = text.encode(), random.Random(6962), 0
    for number in range(count):
        place, byte = chance.randrange(len(data)), chance.randrange(256)
        changed = data[:place] + bytes([byte]) + data[place + 1:]
        try:
            if repr(json.loads(changed.decode())) == repr(document):
                equal += 1
                continue
        except ValueError:
            pass
        yield f"flip {number} at byte {place} to {byte}", changed
    print(f"{equal} of {count} flips left what the file says")


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", nargs="?", default=HERE / "cases", type=Path)
    arguments.add_argument("--sweep", action="store_true")
    arguments.add_argument("--flips", type=int, default=0)
    asked = arguments.parse_args()
    cases = json.loads((asked.folder / "manifest.json").read_text())
    jobs = [(case["file"], check_case, (asked.folder, case)) for case in cases]
    by_file = {case["file"].split("-", 1)[1].removesuffix(".json"): case for case in cases}
    if asked.sweep:
        for name in ("good-pack", "good-bundle", "good-proof-mismatch"):
            text = (asked.folder / by_file[name]["file"]).read_text()
            for what, data in tampered(json.loads(text), text):
                jobs.append((f"{name}: {what}", check_refused, (asked.folder, data, by_file[name])))
    if asked.flips:
        # Once with every key pinned, and once with no key, when only a bundle can be checked.
        text = (asked.folder / by_file["good-bundle-indented"]["file"]).read_bytes().decode()
        for what, data in flipped(json.loads(text), text, asked.flips):
            for pins in (by_file["good-bundle-indented"], {}):
                name = f"{what}, {'pinned' if pins else 'not pinned'}"
                jobs.append((name, check_refused, (asked.folder, data, pins)))
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda job: job[1](*job[2]), jobs))
    failures = [(job[0], wrong) for job, wrong in zip(jobs, found) if wrong]
    for name, wrong in failures:
        print(f"{name}: {'; '.join(wrong)}")
    print(f"{len(jobs)} files, {len(failures)} wrong")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
