// Adds a credential, a request id and a descriptive error to each call.

import type { DescMessage, MessageShape } from '@bufbuild/protobuf';
import type { Transport } from '@connectrpc/connect';
import { AuthorityError } from './authority-error.js';

/**
 * A person's token or an API key. A function is called before each call and can renew a token.
 * A web page cannot keep a secret. API keys are refused there.
 */
export type Credential = string | (() => string | Promise<string>);

export function authorityTransport(inner: Transport, credential: Credential | undefined): Transport {
  return {
    async unary(method, signal, timeoutMs, header, input, contextValues) {
      const headers = await completed(header, credential);
      try {
        return await inner.unary(method, signal, timeoutMs, headers, input, contextValues);
      } catch (thrown) {
        throw failure(thrown, signal, headers);
      }
    },
    async stream(method, signal, timeoutMs, header, input, contextValues) {
      const headers = await completed(header, credential);
      try {
        const response = await inner.stream(method, signal, timeoutMs, headers, input, contextValues);
        return { ...response, message: messages(response.message, signal, headers) };
      } catch (thrown) {
        throw failure(thrown, signal, headers);
      }
    },
  };
}

async function* messages<O extends DescMessage>(
  received: AsyncIterable<MessageShape<O>>, signal: AbortSignal | undefined, headers: Headers,
): AsyncGenerator<MessageShape<O>, void> {
  try {
    yield* received;
  } catch (thrown) {
    throw failure(thrown, signal, headers);
  }
}

/** Returns the caller's reason for a call that the caller aborted, as `fetch` does. */
function failure(thrown: unknown, signal: AbortSignal | undefined, headers: Headers): unknown {
  return signal?.aborted ? signal.reason : AuthorityError.from(thrown, headers.get('x-request-id') ?? undefined);
}

/** Completes the headers of a call; headers from the caller stay. */
async function completed(given: HeadersInit | undefined, credential: Credential | undefined): Promise<Headers> {
  const headers = new Headers(given);
  if (!headers.has('x-request-id')) headers.set('x-request-id', crypto.randomUUID());
  if (credential !== undefined && !headers.has('authorization')) {
    headers.set('authorization', `Bearer ${checked(typeof credential === 'string' ? credential : await credential())}`);
  }
  return headers;
}

/** @throws {TypeError} The credential is an API key in a web page. */
export function checked(credential: string): string {
  if (credential.startsWith('svc_') && (typeof document !== 'undefined' || typeof window !== 'undefined')) {
    throw new TypeError('anyone who opens a page can read its API key: use the token of the signed-in person instead');
  }
  return credential;
}
