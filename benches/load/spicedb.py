"""Measures CheckPermission of SpiceDB as a shared library, in this process. Arguments: the library, the number of
threads and of seconds. Prints a JSON object."""

import ctypes
import json
import resource
import struct
import sys
import threading
import time

SCHEMA = """
caveat within(amount double, most double, currency string, jurisdiction string, jurisdictions list<string>) {
    amount <= most && currency == "EUR" && jurisdiction in jurisdictions
}
definition agent {}
definition action {
    relation delegate: agent with within
    permission perform = delegate
}
"""
HAS_PERMISSION = bytes([2 << 3, 2])


def field(number, content):
    """Encodes a length-delimited field of a protobuf message."""
    content = content.encode() if isinstance(content, str) else content
    length, size = len(content), b""
    while length > 127:
        size += bytes([length & 127 | 128])
        length >>= 7
    return bytes([number << 3 | 2]) + size + bytes([length]) + content


def values(members):
    """Encodes a google.protobuf.Struct."""
    return b"".join(field(1, field(1, name) + field(2, value(content))) for name, content in members.items())


def value(content):
    if isinstance(content, list):
        return field(6, b"".join(field(1, value(each)) for each in content))
    if isinstance(content, str):
        return field(3, content)
    return bytes([2 << 3 | 1]) + struct.pack("<d", content)


library = ctypes.CDLL(sys.argv[1])
library.spicedb_start.restype = ctypes.c_char_p
started = json.loads(library.spicedb_start(b"{}"))
handle = ctypes.c_ulonglong(started["data"]["handle"])
library.spicedb_free_bytes.argtypes = [ctypes.c_void_p]


def call(name, message):
    """Calls a method and returns its answer."""
    answer, length, error = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_void_p()
    outputs = [ctypes.byref(output) for output in (answer, length, error)]
    library[f"spicedb_{name}"](handle, message, len(message), *outputs)
    if error.value:
        sys.exit(f"{name}: {ctypes.string_at(error.value).decode()}")
    read = ctypes.string_at(answer.value, length.value)
    library.spicedb_free_bytes(answer)
    return read


action = field(1, "action") + field(2, "payment/execute")
agent = field(1, field(1, "agent") + field(2, "invoice-bot"))
bounds = field(1, "within") + field(2, values({"most": 50000.0, "jurisdictions": ["DE", "FR", "GB"]}))
relationship = field(1, action) + field(2, "delegate") + field(3, agent) + field(4, bounds)
context = values({"amount": 1200.0, "currency": "EUR", "jurisdiction": "DE"})
# Fully consistent: a check sees every earlier change, as a decision does.
check = field(1, bytes([4 << 3, 1])) + field(2, action) + field(3, "perform") + field(4, agent) + field(5, context)

call("schema_write_schema", field(1, SCHEMA))
call("permissions_write_relationships", field(1, bytes([1 << 3, 2]) + field(2, relationship)))
if HAS_PERMISSION not in call("permissions_check_permission", check):
    sys.exit("the check is not allowed")

threads, seconds = int(sys.argv[2]), float(sys.argv[3])
took = []


def checks(end):
    own = []
    while (begun := time.monotonic()) < end:
        call("permissions_check_permission", check)
        own.append(time.monotonic() - begun)
    took.extend(own)


def run(end):
    took.clear()
    running = [threading.Thread(target=checks, args=(end,)) for _ in range(threads)]
    [thread.start() for thread in running]
    [thread.join() for thread in running]


def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


run(time.monotonic() + 1)
before = cpu()
run(time.monotonic() + seconds)
used = cpu() - before
took.sort()
print(json.dumps({
    "per_second": len(took) / seconds,
    "p50": round(took[len(took) // 2] * 1e6),
    "p99": round(took[len(took) * 99 // 100] * 1e6),
    "cpu": used * 1e6 / len(took),
    "resident": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
}))
