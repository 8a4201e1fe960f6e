// A service in this process that signs what it decides, and fails as each test tells it: gRPC-Web over HTTP/1.1.
import { createServer } from 'node:http';
import { webcrypto } from 'node:crypto';
import { create, fromBinary, toBinary, toJson } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { ConnectError } from '@connectrpc/connect';
import { setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
import { trailerSerialize } from '@connectrpc/connect/protocol-grpc-web';
import { canonicalize } from '@agent-authority/sdk/verify';
import { Decision } from '@agent-authority/sdk/guard';
import {
  AskedApprovalSchema,
  CancelApprovalRequestSchema,
  GetAskedApprovalRequestSchema,
} from '@agent-authority/sdk/proto/approval/v1/approval_pb';
import { DecisionRequestSchema } from '@agent-authority/sdk/proto/runtime/v1/decision_pb';
import {
  EvaluateDecisionRequestSchema,
  ReportDecisionRequestSchema,
  ReportDecisionResponseSchema,
} from '@agent-authority/sdk/proto/runtime/v1/decision_service_pb';
import { DecisionUpdateSchema, StopConditionEventSchema } from '@agent-authority/sdk/proto/runtime/v1/live_pb';
import { EvaluateDecisionResponseSchema } from '@agent-authority/sdk/proto/runtime/v1/runtime_service_pb';
import { ErrorInfoSchema } from '../dist/generated/google/rpc/error_details_pb.js';

export const subject = 'svc:agent:acme:invoice-bot';
const { subtle } = webcrypto;
const sha256 = async (bytes) => Buffer.from(await subtle.digest('SHA-256', bytes)).toString('hex');

/** Returns a signing key of the service, and its JWK. */
export async function signingKey(purpose = 'evidence') {
  const { privateKey, publicKey } = await subtle.generateKey('Ed25519', true, ['sign', 'verify']);
  const { x } = await subtle.exportKey('jwk', publicKey);
  const print = await sha256(Buffer.from(`{"crv":"Ed25519","kty":"OKP","x":"${x}"}`));
  const kid = `svc-${purpose}-2026-${print.slice(0, 8)}`;
  return { kid, privateKey, jwk: { kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA', use: 'sig', kid, x } };
}

const frame = (flag, bytes) => {
  const head = Buffer.alloc(5);
  head[0] = flag;
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
};

/** The end of a call: success, or an error in the form of the service. */
function trailers(status, reason, metadata = {}) {
  const headers = new Headers();
  const info = { desc: ErrorInfoSchema, value: { reason, domain: 'authority', metadata } };
  setTrailerStatus(headers, status && new ConnectError(`it is ${reason}`, status, undefined, [info]));
  return frame(0x80, Buffer.from(trailerSerialize(headers)));
}

export class Service {
  /** What the next calls of EvaluateDecision do, in order. Then it permits. */
  faults = [];
  /** Changes the signed record before it is signed, and the answer after it. */
  changeRecord = () => {};
  changeAnswer = () => {};
  validFor = 60_000;
  /** The answer with the keys, and how often it was read. */
  jwksStatus = 200;
  jwksHeaders = {};
  reads = 0;
  decision = 'allow_with_constraints';
  obligations = ['audit.emit'];
  asked = [];
  keys = [];
  reports = [];
  cancelled = [];
  /** Each approval's state, by id. */
  approvals = new Map();
  /** What the streams do: functions of their writers. */
  onWatchDecision = (stream) => stream.end();
  onWatchStop = (stream) => stream.heartbeat();
  onReport = () => undefined;
  /** The answers by idempotency key. */
  answers = new Map();

  static async start() {
    const service = new Service();
    service.key = await signingKey();
    service.jwks = { keys: [service.key.jwk] };
    service.server = createServer(
      (request, response) =>
        void service.#serve(request, response).catch((error) => {
          if (error.message !== 'aborted') throw error;
        }),
    );
    await new Promise((resolve) => service.server.listen(0, '127.0.0.1', resolve));
    // It does not keep the process of a test running.
    service.server.unref().on('connection', (socket) => socket.unref());
    service.baseUrl = `http://127.0.0.1:${service.server.address().port}`;
    return service;
  }

  stop() {
    this.server.closeAllConnections();
    return new Promise((resolve) => this.server.close(resolve));
  }

  async #serve(request, response) {
    if (request.url === '/.well-known/jwks.json') {
      this.reads += 1;
      response.writeHead(this.jwksStatus, this.jwksHeaders);
      return void response.end(JSON.stringify(this.jwks));
    }
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks).subarray(5);
    const method = request.url.split('/').at(-1);
    const reply = {
      message: (schema, message, headers = {}) => {
        response.writeHead(200, { 'content-type': 'application/grpc-web+proto', ...headers });
        response.end(Buffer.concat([frame(0, toBinary(schema, create(schema, message))), trailers()]));
      },
      error: (status, reason, metadata) => {
        response.writeHead(200, { 'content-type': 'application/grpc-web+proto' });
        response.end(trailers(status, reason, metadata));
      },
      status: (status, headers = {}) =>
        response.writeHead(status, { 'content-type': 'text/html', ...headers }).end('<h1>proxy</h1>'),
      raw: (bytes) => response.writeHead(200, { 'content-type': 'application/grpc-web+proto' }).end(bytes),
      cut: () => response.destroy(),
    };
    if (method === 'EvaluateDecision') return this.#evaluate(request, body, reply, response);
    if (method === 'ReportDecision') {
      const { decisionId, outcome, detail } = fromBinary(ReportDecisionRequestSchema, body);
      const report = { decisionId, outcome, detail, key: request.headers['idempotency-key'] };
      this.reports.push(report);
      return (
        (await this.onReport(reply, report)) ?? reply.message(ReportDecisionResponseSchema, { decisionId, outcome })
      );
    }
    if (method === 'GetAskedApproval') {
      const { id } = fromBinary(GetAskedApprovalRequestSchema, body);
      const state = this.approvals.get(id);
      return state ? reply.message(AskedApprovalSchema, { id, state }) : reply.error(5, 'not_found');
    }
    if (method === 'CancelApproval') {
      const { id } = fromBinary(CancelApprovalRequestSchema, body);
      this.cancelled.push(id);
      return reply.message(AskedApprovalSchema, { id, state: 'void' });
    }
    return this.#stream(method, reply, response);
  }

  #stream(method, reply, response) {
    response.writeHead(200, { 'content-type': 'application/grpc-web+proto' });
    const schema = method === 'WatchDecision' ? DecisionUpdateSchema : StopConditionEventSchema;
    const send = (message) => response.write(frame(0, toBinary(schema, create(schema, message))));
    const stream = {
      ...reply,
      refuse: (status, reason) => response.end(trailers(status, reason)),
      heartbeat: () => send({ kind: 'heartbeat' }),
      stopped: (stopCondition) => {
        send({ kind: 'stopped', stopCondition });
        response.end(trailers());
      },
      state: (approvalState) => send({ approvalState }),
      end: () => response.end(trailers()),
      send,
    };
    response.flushHeaders();
    return method === 'WatchDecision' ? this.onWatchDecision(stream) : this.onWatchStop(stream);
  }

  async #evaluate(request, body, reply, response) {
    const { request: asked } = fromBinary(EvaluateDecisionRequestSchema, body);
    const question = toJson(DecisionRequestSchema, asked, { useProtoFieldName: true });
    const key = request.headers['idempotency-key'];
    this.asked.push(question);
    this.keys.push(key);
    this.lastHeaders = request.headers;
    const fault = this.faults.shift();
    const answered = async () => {
      const replayed = this.answers.has(key);
      if (!replayed) this.answers.set(key, await this.answer(question));
      reply.message(
        EvaluateDecisionResponseSchema,
        this.answers.get(key),
        replayed ? { 'idempotency-replayed': 'true' } : {},
      );
    };
    if (!fault) return answered();
    return fault({
      ...reply,
      answered,
      key,
      question,
      response,
      decide: async () => this.answers.set(key, await this.answer(question)),
    });
  }

  /** Decides and signs. */
  async answer(question) {
    const evaluatedAt = Date.now();
    // Concurrent calls may change these.
    const { decision, obligations, changeRecord, changeAnswer } = this;
    const { context = {}, include_record: _, justification: __, explain, ...request } = question;
    const salt = Buffer.from(webcrypto.getRandomValues(new Uint8Array(16)));
    const permits = decision.startsWith('allow');
    const digest = await sha256(Buffer.concat([salt, Buffer.from(canonicalize(context))]));
    const time = (at) =>
      new Date(at)
        .toISOString()
        .replace('.000Z', 'Z')
        .replace(/(\.[0-9]{3})Z$/, '$1000Z');
    const record = {
      kind: 'svc.decision.record.v1',
      tenant_id: 'svc:tenant:acme',
      operation: 'evaluate_decision',
      authority_revision: 7,
      evaluated_at: time(evaluatedAt),
      valid_until: permits ? time(evaluatedAt + this.validFor) : null,
      facts_digest: `sha256:${'0'.repeat(64)}`,
      nonce: '5f'.repeat(16),
      semantics: 'authority/1',
      a_later_member: [1],
      request: { ...request, explain: explain ?? false, context_digest: `sha256:${digest}` },
      verdict: {
        decision,
        reason_code: permits ? 'permission_granted' : 'approval_threshold_breach',
        reasons: [permits ? 'permission_granted' : 'approval_threshold_breach'],
        obligations: permits ? obligations : [],
        stop_conditions: permits ? ['actor.stop_signal'] : [],
        tool_id: null,
      },
    };
    changeRecord(record);
    const text = canonicalize(record);
    const recordDigest = await sha256(Buffer.from(text));
    const { verdict } = record;
    const decisionId = `svc:decision:${evaluatedAt.toString(16).padStart(12, '0')}${recordDigest.slice(0, 52)}`;
    const signature = Buffer.from(await subtle.sign('Ed25519', this.key.privateKey, Buffer.from(text)));
    const answer = {
      decision: Decision[verdict.decision.toUpperCase()],
      reasonCode: verdict.reason_code,
      reasons: verdict.reasons,
      decisionId,
      obligations: verdict.obligations,
      stopConditions: verdict.stop_conditions,
      authorityRevision: 7,
      verifyUrl: `${this.baseUrl}/receipts/${decisionId}`,
      evaluatedAt: timestampFromMs(evaluatedAt),
      evidencePack: {
        recordDigest: `sha256:${recordDigest}`,
        signature: {
          alg: 'Ed25519',
          canonicalization: 'RFC8785',
          kid: this.key.kid,
          value: signature.toString('base64'),
        },
      },
      record: text,
      contextSalt: salt.toString('base64'),
      ...(permits && { validUntil: timestampFromMs(evaluatedAt + this.validFor) }),
    };
    changeAnswer(answer, question);
    return answer;
  }
}
