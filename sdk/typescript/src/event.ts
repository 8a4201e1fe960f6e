// Events as the service gives them over gRPC: canonical JSON (RFC 8785), byte for byte.

import type { WebhookEvent } from './verify-webhook.js';

/** An event of a tenant's log. */
export interface AuthorityEvent extends WebhookEvent {
  /** Its place in the log: from 1, without gaps. */
  sequence: number;
  /** The event as the service keeps it, to store or compare. Not a member of it: JSON has it not twice. */
  readonly bytes: Uint8Array;
}

/** The event in the bytes that `listEvents` and `streamEvents` give. */
export function parseEvent(bytes: Uint8Array): AuthorityEvent {
  const event = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as AuthorityEvent;
  return Object.defineProperty(event, 'bytes', { value: bytes, enumerable: false });
}
