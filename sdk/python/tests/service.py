"""A scripted stand-in for the service: signs real records, and fails as it is told to."""

import base64
import hashlib
import json
import threading
import time
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from agent_authority.jcs import canonical

KEY = "svc_sandbox_0_1_2"
SUBJECT = "svc:agent:acme:invoice-bot"
TENANT = "svc:tenant:acme"


def text(moment):
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def key_id(private, purpose="evidence"):
    x = base64.urlsafe_b64encode(private.public_key().public_bytes_raw()).decode().rstrip("=")
    thumb = hashlib.sha256(canonical({"crv": "Ed25519", "kty": "OKP", "x": x})).hexdigest()
    return {"kty": "OKP", "crv": "Ed25519", "x": x, "kid": f"svc-{purpose}-2026-{thumb[:8]}", "use": "sig"}


class Service:
    """Answers decisions by ``verdicts`` (action to what the answer has), after the faults in ``faults``."""

    def __init__(self):
        self.private = Ed25519PrivateKey.generate()
        self.jwks, self.jwks_status, self.jwks_headers = {"keys": [key_id(self.private)]}, 200, {}
        self.verdicts, self.faults, self.reports = {}, [], []
        #: Decisions that were made, by their idempotency keys; the bodies of all attempts.
        self.answers, self.attempts, self.approvals, self.calls = {}, [], {}, []
        self.validity, self.heartbeat, self.stop, self.refuse_streams = timedelta(seconds=60), 0.05, {}, None
        self.refuse_approvals, self.dribble = None, None
        self.skew = timedelta()
        self.lock, self.over = threading.Lock(), threading.Event()
        handler = type("Handler", (_Handler,), {"service": self})
        self.server = _Server(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self):
        self.over.set()
        self.server.shutdown()
        self.server.server_close()

    @property
    def decisions(self):
        """The decisions that permit, by id."""
        return [answer for answer in self.answers.values() if answer["decision"] == "allow"]

    def outcomes(self):
        return [report["outcome"] for report in self.reports]

    def decide(self, body, request=None, **changes):
        """Returns a signed answer. ``changes`` override the record."""
        verdict = dict(self.verdicts.get(body["action"], {"decision": "allow"}))
        cited = self.approvals.get(body.get("approval_id"))
        if cited is not None:
            verdict["cited_approval"] = {"id": body["approval_id"], "state": cited["state"]}
            if cited["state"] == "approved":
                verdict["decision"], cited["state"] = "allow", "used"
        if verdict["decision"] == "require_approval" and verdict.get("approval_id", "new") == "new":
            verdict["approval_id"] = f"svc:approval:{len(self.approvals):032x}"
            self.approvals[verdict["approval_id"]] = {"state": "pending"}
        permits = verdict["decision"] == "allow"
        at = datetime.now(timezone.utc) + self.skew
        until = text(at + self.validity) if permits else None
        salt = base64.b64encode(b"0123456789abcdef").decode()
        recorded = {name: value for name, value in body.items() if name not in ("context", "include_record", "justification")}
        digest = hashlib.sha256(base64.b64decode(salt) + canonical(body.get("context", {}))).hexdigest()
        recorded |= {"context_digest": f"sha256:{digest}", "explain": False, **(request or {})}
        answer = {"decision": verdict["decision"], "reason_code": verdict.get("reason_code", "permission_granted"),
                  "obligations": verdict.get("obligations", ["audit.emit"]) if permits else [],
                  "stop_conditions": ["actor.stop_signal"] if permits else [], "tool_id": body.get("tool_id"),
                  "authority_revision": 7, "valid_until": until}
        word = "allow_with_constraints" if permits else verdict["decision"]
        record = {"kind": "svc.decision.record.v1", "tenant_id": TENANT, "operation": "evaluate", "nonce": "aa",
                  "evaluated_at": text(at), "valid_until": until, "authority_revision": 7, "facts_digest": "sha256:" + "0" * 64,
                  "facts_index": [], "semantics": "authority/1", "request": recorded,
                  "verdict": {**{name: answer[name] for name in ("reason_code", "obligations", "stop_conditions", "tool_id")},
                              "decision": word, "reasons": [], "authority": None, "approvals_needed": None}, **changes}
        signed = canonical(record)
        name = f"{int(at.timestamp() * 1000):012x}{hashlib.sha256(signed).hexdigest()[:52]}"
        signature = {"alg": "Ed25519", "canonicalization": "RFC8785", "kid": self.jwks["keys"][0]["kid"],
                     "value": base64.b64encode(self.private.sign(signed)).decode()}
        return {**answer, "decision_id": f"svc:decision:{name}", "verify_url": f"{self.url}/receipts/x",
                "evidence_pack": {"record_digest": f"sha256:{hashlib.sha256(signed).hexdigest()}", "signature": signature},
                "approval_id": None, "trace": [], "future_member": 1, **verdict,
                "record": signed.decode(), "context_salt": salt}


class _Server(ThreadingHTTPServer):
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass  # a client that was cut off


class _Handler(BaseHTTPRequestHandler):
    protocol_version, disable_nagle_algorithm = "HTTP/1.1", True
    service: Service

    def log_message(self, *_):
        pass

    def do_POST(self):
        service, body = self.service, json.loads(self.rfile.read(int(self.headers["content-length"])))
        service.calls.append(self.path)
        if self.headers["authorization"] != f"Bearer {KEY}":
            return self.answer(401, {"error": "unauthenticated", "message": "no key"})
        if self.path.endswith(":report"):
            with service.lock:
                fault = service.report_faults.pop(0) if getattr(service, "report_faults", None) else None
                if fault is None:
                    service.reports.append({"decision_id": unquote(self.path.split("/")[3])[:-7], **body})
            if isinstance(fault, bytes):
                return self.answer(200, fault)
            return self.answer(fault or 200, body if fault is None else {"error": "unavailable"})
        if self.path.endswith("/cancel"):
            service.approvals[unquote(self.path).split("/")[3]]["state"] = "void"
            return self.answer(200, {"state": "void"})
        with service.lock:
            service.attempts.append(body)
            fault = service.faults.pop(0) if service.faults else None
        if fault is not None and fault(self, body) is True:
            return None
        return self.answer(200, *self.first_answer(body))

    def first_answer(self, body):
        """Decides, or repeats the answer to the same key."""
        key = self.headers["idempotency-key"]
        with self.service.lock:
            replayed = key in self.service.answers
            answer = self.service.answers.setdefault(key, self.service.answers.get(key) or self.service.decide(body))
        return answer, ({"idempotency-replayed": "true"} if replayed else {})

    def do_GET(self):
        service, path = self.service, unquote(self.path)
        service.calls.append(path)
        if path == "/.well-known/jwks.json":
            return self.answer(service.jwks_status, service.jwks, service.jwks_headers)
        if path.startswith("/v1/approvals/") and service.refuse_approvals:
            return self.answer(service.refuse_approvals, {"error": "unavailable"})
        if path.startswith("/v1/approvals/"):
            return self.answer(200, service.approvals[path.rpartition("/")[2]])
        if service.dribble:
            return service.dribble(self)
        if service.refuse_streams:
            return self.answer(service.refuse_streams, {"error": "rate_limited", "message": "too many streams"})
        if path.endswith(":watch"):
            return self.stream(self.approval_updates(path.split("/")[3].rpartition(":")[0]))
        return self.stream(self.stop_events(path.split("/")[3].rpartition(":")[0]))

    def approval_updates(self, decision_id):
        answer = next(answer for answer in self.service.answers.values() if answer["decision_id"] == decision_id)
        while not self.service.over.is_set():
            state = self.service.approvals[answer["approval_id"]]["state"]
            yield {"decision_id": decision_id, "decision": "require_approval", "approval_state": state}
            if state != "pending":
                return
            time.sleep(0.02)

    def stop_events(self, decision_id):
        while not self.service.over.is_set():
            if condition := self.service.stop.get("condition"):
                yield {"kind": "stopped", "stop_condition": condition}
                return
            if not self.service.stop.get("silent"):
                yield {"kind": "heartbeat", "authority_revision": 7}
            time.sleep(self.service.heartbeat)

    def stream(self, events):
        self.send_response(200)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        try:
            for event in events:
                line = json.dumps(event).encode() + b"\n"
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            pass
        self.close_connection = True

    def answer(self, status, members, headers=()):
        body = members if isinstance(members, bytes) else json.dumps(members).encode()
        try:
            self.send_response(status)
            for name, value in dict(headers).items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            pass

    def cut(self):
        self.close_connection = True
        self.connection.close()
        return True


class Endless(list):
    """A fault that lasts."""

    def pop(self, _index=-1):
        return self[0]


# Faults: each gets the handler and the body, and returns True if the call is over.


def status(code, error="unavailable", headers=()):
    def fault(handler, _body):
        handler.answer(code, {"ok": False, "error": error, "message": "scripted"}, headers)
        return True

    return fault


def cut_before(handler, _body):
    return handler.cut()


def cut_after(handler, body):
    """Decides, and cuts the connection before the answer."""
    handler.first_answer(body)
    return handler.cut()


def cut_within(handler, body):
    """Decides, and cuts the connection in the middle of the answer."""
    text = json.dumps(handler.first_answer(body)[0]).encode()
    handler.send_response(200)
    handler.send_header("content-length", str(len(text)))
    handler.end_headers()
    handler.wfile.write(text[: len(text) // 2])
    handler.wfile.flush()
    return handler.cut()


def dribble(part, pause=0.05):
    """Sends a part of an answer again and again, so that there is always some data."""

    def fault(handler, _body=None):
        try:
            while not handler.service.over.is_set():
                handler.wfile.write(part)
                time.sleep(pause)
        except OSError:
            pass
        return handler.cut()

    return fault


def delay(seconds):
    def fault(handler, body):
        handler.first_answer(body)
        time.sleep(seconds)
        return handler.cut()

    return fault


def late(seconds):
    """Decides, and answers after some seconds."""

    def fault(handler, body):
        answer = handler.first_answer(body)
        time.sleep(seconds)
        handler.answer(200, *answer)
        return True

    return fault


def changed(change):
    """Answers after ``change`` has changed the answer's members."""

    def fault(handler, body):
        answer = json.loads(json.dumps(handler.first_answer(body)[0]))
        handler.answer(200, change(answer) or answer)
        return True

    return fault


def doubled(handler, body):
    """A proxy sends the request twice, and returns the second answer."""
    handler.first_answer(body)
    handler.answer(200, *handler.first_answer(body))
    return True


def jwks_file(service, folder):
    path = Path(folder) / "jwks.json"
    path.write_text(json.dumps(service.jwks))
    return path
