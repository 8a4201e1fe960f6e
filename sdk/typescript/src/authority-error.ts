// Errors of failed calls.

import { Code, ConnectError } from '@connectrpc/connect';
import { BadRequestSchema, ErrorInfoSchema } from './generated/google/rpc/error_details_pb.js';

/** An invalid field of the request. */
export interface Violation {
  /** Its path, such as `context.amount`; empty for the entry that counts further problems. */
  readonly field: string;
  readonly problem: string;
}

interface Cause {
  code: string;
  status: Code;
  details?: readonly Violation[];
  metadata?: Readonly<Record<string, string>>;
  requestId?: string | undefined;
  cause?: unknown;
}

/** A failed call or a broken stream. It is never a permission, for any code. */
export class AuthorityError extends Error {
  override readonly name = 'AuthorityError';
  /**
   * The reason as one word, the same as in `error` over REST: `invalid_request`,
   * `permission_scope_exceeded`, … `unavailable` also means that no response arrived; other codes
   * may be added.
   */
  readonly code: string;
  /** The gRPC status. */
  readonly status: Code;
  /** The invalid fields. */
  readonly details: readonly Violation[];
  /** Values of the code, such as `oldest` for `sequence_expired`. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Identifies the call in the service's log. */
  readonly requestId: string | undefined;

  constructor(message: string, { code, status, details = [], metadata = {}, requestId, cause }: Cause) {
    super(message, { cause });
    this.code = code;
    this.status = status;
    this.details = details;
    this.metadata = metadata;
    this.requestId = requestId;
  }

  /** Milliseconds to wait before the next attempt, if the service sent a time. */
  get retryAfterMs(): number | undefined {
    const seconds = Number(this.metadata['retry_after']);
    return seconds > 0 ? seconds * 1000 : undefined;
  }

  /** Whether the service itself sent the error, and not a network or a proxy. */
  get isFromService(): boolean {
    return this.cause instanceof ConnectError && infoOf(this.cause) !== undefined;
  }

  /** Whether the service itself refused the call, and will refuse it again. */
  get isRefusal(): boolean {
    return this.isFromService && !this.isTransient && this.code !== 'idempotency_in_progress';
  }

  /** Whether the same call may succeed later. */
  get isTransient(): boolean {
    return TRANSIENT.includes(this.status);
  }

  /** Converts an error of a transport, using the details that the service adds to each error. */
  static from(thrown: unknown, requestId?: string): AuthorityError {
    if (thrown instanceof AuthorityError) return thrown;
    const error = ConnectError.from(thrown);
    const info = infoOf(error);
    const violations = error.findDetails(BadRequestSchema).flatMap(({ fieldViolations }) => fieldViolations);
    // The service adds a reason to each error. An unknown error without one comes from a network or
    // a proxy.
    const status = !info && error.code === Code.Unknown ? Code.Unavailable : error.code;
    return new AuthorityError(error.rawMessage, {
      code: info?.reason ?? word(status),
      status,
      details: violations.map(({ field, description }) => ({ field, problem: description })),
      metadata: { ...retryAfter(error), ...info?.metadata },
      requestId: error.metadata.get('x-request-id') ?? requestId,
      cause: error,
    });
  }
}

const infoOf = (error: ConnectError) =>
  error.findDetails(ErrorInfoSchema).find(({ domain }) => domain === 'authority');

/** Returns the time of a proxy's `Retry-After`, as the service's errors have it. */
function retryAfter(error: ConnectError): { retry_after?: string } {
  const seconds = error.metadata.get('retry-after');
  return seconds && /^[0-9]+$/.test(seconds) ? { retry_after: seconds } : {};
}

const TRANSIENT: readonly Code[] = [
  Code.Unavailable, Code.ResourceExhausted, Code.DeadlineExceeded, Code.Internal, Code.Unknown, Code.DataLoss,
  Code.Canceled,
];

/** Returns the name of a gRPC status: `deadline_exceeded`. */
const word = (status: Code) => Code[status].replace(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter}`).toLowerCase();
