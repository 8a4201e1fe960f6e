"""Writes some tampered versions of a good file, spread evenly over their kinds.

Usage: python sample.py FILE COUNT FOLDER PREFIX
"""
import json
import sys
from pathlib import Path

from tamper import tampered

file, count, folder, prefix = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]
text = file.read_text(encoding="utf-8")
made = tampered(json.loads(text), text)
for number in range(count):
    name, data = made[number * len(made) // count]
    (folder / f"{prefix}-{number:02}.json").write_bytes(data)
    print(f"{prefix}-{number:02}.json\t{name}")
