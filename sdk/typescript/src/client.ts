// The service's API for pages, Node, Deno, Bun and workers: gRPC-Web over `fetch`.

import type { DescService } from '@bufbuild/protobuf';
import { createClient as createServiceClient, type Client, type Transport } from '@connectrpc/connect';
import { createGrpcWebTransport } from '@connectrpc/connect-web';
import type { AuthorityEvent } from './event.js';
import { followEvents, type FollowOptions } from './follow-events.js';
import { ApprovalService } from './generated/authority/approval/v1/approval_pb.js';
import { DelegationService } from './generated/authority/delegation/v1/delegation_pb.js';
import { EventService } from './generated/authority/events/v1/event_service_pb.js';
import { EvidenceService } from './generated/authority/evidence/v1/evidence_pb.js';
import { AuthorityService } from './generated/authority/runtime/v1/authority_service_pb.js';
import { DecisionService } from './generated/authority/runtime/v1/decision_service_pb.js';
import { RuntimeService } from './generated/authority/runtime/v1/runtime_service_pb.js';
import { authorityTransport, checked, type Credential } from './transport.js';

export { Code } from '@connectrpc/connect';
export { AuthorityError, type Violation } from './authority-error.js';
export { parseEvent, type AuthorityEvent } from './event.js';
export type { FollowOptions } from './follow-events.js';
export { Decision } from './generated/authority/runtime/v1/decision_pb.js';
export type { Credential } from './transport.js';

export interface ClientOptions {
  /**
   * The service's address: `https://authority.example`. A page's origin must be in its
   * `cors.origins`.
   */
  baseUrl: string;
  /** Without a credential, only public operations can be called. */
  credential?: Credential | undefined;
  /** By default gRPC-Web over `fetch`; in Node also a transport of `@connectrpc/connect-node`. */
  transport?: Transport | undefined;
}

/**
 * The services of the API. A call takes its message and `{ signal, timeoutMs, headers }`. Without
 * `timeoutMs` it waits as long as the connection lasts. A signal ends a stream; leaving the loop
 * does not. Every failure is an `AuthorityError`.
 */
export interface AuthorityClient {
  readonly runtime: Client<typeof RuntimeService>;
  readonly decisions: Client<typeof DecisionService>;
  readonly approvals: Client<typeof ApprovalService>;
  readonly authority: Client<typeof AuthorityService>;
  readonly delegations: Client<typeof DelegationService>;
  readonly evidence: Client<typeof EvidenceService>;
  readonly events: Client<typeof EventService>;
  /**
   * Any other service of `@agent-authority/sdk/proto/…`. A page thus loads only the services that it
   * calls.
   */
  service<S extends DescService>(service: S): Client<S>;
  /**
   * Yields each event after a sequence, in order, at least once; see `FollowOptions`. Leaving the
   * loop ends it.
   */
  followEvents(options?: FollowOptions): AsyncGenerator<AuthorityEvent, void>;
}

/** @throws {TypeError} An option is invalid. */
export function createClient({ baseUrl, credential, transport }: ClientOptions): AuthorityClient {
  if (!/^https?:$/.test(new URL(baseUrl).protocol)) throw new TypeError('baseUrl must begin with https:// or http://');
  if (typeof credential === 'string') checked(credential);
  const complete = authorityTransport(transport ?? createGrpcWebTransport({ baseUrl }), credential);
  const service = <S extends DescService>(desc: S) => createServiceClient(desc, complete);
  const events = service(EventService);
  return {
    runtime: service(RuntimeService),
    decisions: service(DecisionService),
    approvals: service(ApprovalService),
    authority: service(AuthorityService),
    delegations: service(DelegationService),
    evidence: service(EvidenceService),
    events,
    service,
    followEvents: (options) => followEvents(events, options),
  };
}
