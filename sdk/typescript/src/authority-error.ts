// Why a call failed.

import { Code, ConnectError } from '@connectrpc/connect';
import { BadRequestSchema, ErrorInfoSchema } from './generated/google/rpc/error_details_pb.js';

/** A member of the request that is at fault. */
export interface Violation {
  /** Its path, such as `context.amount`; empty for a number of further ones. */
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

/** A call that failed, or a stream that broke. Whatever the code, it is not a permission. */
export class AuthorityError extends Error {
  override readonly name = 'AuthorityError';
  /**
   * Why, as one word, the same as in `error` over REST: `invalid_request`, `permission_scope_exceeded`, …
   * `unavailable` also means that no answer came; other codes may be added.
   */
  readonly code: string;
  /** The gRPC status. */
  readonly status: Code;
  /** The members at fault. */
  readonly details: readonly Violation[];
  /** What belongs to the code, such as `oldest` to `sequence_expired`. */
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

  /** Milliseconds to wait before the next attempt, if the service says so. */
  get retryAfterMs(): number | undefined {
    const seconds = Number(this.metadata['retry_after']);
    return seconds > 0 ? seconds * 1000 : undefined;
  }

  /** Whether the same call may succeed later. */
  get isTransient(): boolean {
    return TRANSIENT.includes(this.status);
  }

  /** What a transport threw, by the details that the service gives each error. */
  static from(thrown: unknown, requestId?: string): AuthorityError {
    if (thrown instanceof AuthorityError) return thrown;
    const error = ConnectError.from(thrown);
    const info = error.findDetails(ErrorInfoSchema).find(({ domain }) => domain === 'authority');
    const violations = error.findDetails(BadRequestSchema).flatMap(({ fieldViolations }) => fieldViolations);
    // The service names each of its errors: an unknown one without a name is that of a network or a proxy.
    const status = !info && error.code === Code.Unknown ? Code.Unavailable : error.code;
    return new AuthorityError(error.rawMessage, {
      code: info?.reason ?? word(status),
      status,
      details: violations.map(({ field, description }) => ({ field, problem: description })),
      metadata: { ...info?.metadata },
      requestId: error.metadata.get('x-request-id') ?? requestId,
      cause: thrown,
    });
  }
}

const TRANSIENT: readonly Code[] = [
  Code.Unavailable, Code.ResourceExhausted, Code.DeadlineExceeded, Code.Internal, Code.Unknown, Code.DataLoss,
  Code.Canceled,
];

/** The name of a gRPC status: `deadline_exceeded`. */
const word = (status: Code) => Code[status].replace(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter}`).toLowerCase();
