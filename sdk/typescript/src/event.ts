// Events as the service sends them over gRPC: canonical JSON (RFC 8785), byte for byte.

import type { WebhookEvent } from './verify-webhook.js';

/** An event of a tenant's log. */
export interface AuthorityEvent extends WebhookEvent {
  /** Its sequence in the log: from 1, without gaps. */
  sequence: number;
  /**
   * The event's bytes as the service stores them, to store or compare. Not enumerable: left out of
   * its JSON.
   */
  readonly bytes: Uint8Array;
}

/** Parses the bytes of an event from `listEvents` and `streamEvents`. */
export function parseEvent(bytes: Uint8Array): AuthorityEvent {
  const event = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as AuthorityEvent;
  return Object.defineProperty(event, 'bytes', { value: bytes, enumerable: false });
}
