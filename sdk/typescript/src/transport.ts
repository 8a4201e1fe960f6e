// What every call has: a credential, a request id, and an error that says why it failed.

import type { DescMessage, MessageShape } from '@bufbuild/protobuf';
import type { Transport } from '@connectrpc/connect';
import { AuthorityError } from './authority-error.js';

/**
 * A person's token or an API key; a function is called before each call, so that it can renew a token.
 * A page cannot keep a secret, so API keys are refused there.
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

/** What the caller aborted fails with the caller's reason, as with `fetch`. */
function failure(thrown: unknown, signal: AbortSignal | undefined, headers: Headers): unknown {
  return signal?.aborted ? signal.reason : AuthorityError.from(thrown, headers.get('x-request-id') ?? undefined);
}

/** The headers of a call; those that the caller gave stay. */
async function completed(given: HeadersInit | undefined, credential: Credential | undefined): Promise<Headers> {
  const headers = new Headers(given);
  if (!headers.has('x-request-id')) headers.set('x-request-id', crypto.randomUUID());
  if (credential !== undefined && !headers.has('authorization')) {
    headers.set('authorization', `Bearer ${checked(typeof credential === 'string' ? credential : await credential())}`);
  }
  return headers;
}

/** @throws {TypeError} It is an API key, and this is a page. */
export function checked(credential: string): string {
  if (credential.startsWith('svc_') && typeof document !== 'undefined') {
    throw new TypeError('whoever opens a page can read its API key: use the token of the person who is signed in');
  }
  return credential;
}
