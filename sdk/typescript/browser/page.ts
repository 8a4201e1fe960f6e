// The page of tests/it/events/browser.rs: makes a decision, follows events, resumes an interrupted
// stream, and provokes errors.

import { AuthorityError, createClient, Decision } from '@agent-authority/sdk/client';

interface Setup { baseUrl: string; token: string; apiKey: string; tenantId: string }

async function run({ baseUrl, token, apiKey, tenantId }: Setup): Promise<object> {
  const client = createClient({ baseUrl, credential: () => token });
  const asking = (amount: number) => ({
    subject: 'svc:agent:acme:invoice-bot',
    action: 'payment.execute',
    purpose: 'invoice-settlement',
    context: { amount, currency: 'EUR', jurisdiction: 'DE' },
  });
  const allowed = await client.runtime.evaluate(asking(1200));

  const events = client.followEvents({ tenantId, after: 0 });
  // A past event: reading it opens the stream before the next event happens.
  const { value: first } = await events.next();
  const held = await client.runtime.evaluate(asking(25_000));
  let told = first;
  while (told && told.event_type !== 'svc.decision.requires_approval') told = (await events.next()).value;
  await events.return();

  const refused = (call: Promise<unknown>) => call.then(String, (error: unknown) => {
    if (!(error instanceof AuthorityError)) throw error;
    const { code, status, details, metadata, requestId } = error;
    return { code, status, details, metadata, named: !!requestId };
  });
  const stream = `${baseUrl}/api/v1/events:stream?tenant_id=${tenantId}&after=0`;
  const authorization = `Bearer ${token}`;
  const interrupted = await eventId(stream, { authorization });
  const resumed = await eventId(stream, { authorization, 'last-event-id': interrupted });

  return {
    interrupted,
    resumed,
    allowed: Decision[allowed.decision],
    first: first?.sequence,
    held: { decision: Decision[held.decision], decision_id: held.decisionId, approval_id: held.approvalId },
    event: told,
    bytes: told && new TextDecoder().decode(told.bytes),
    invalid: await refused(client.runtime.evaluate({ ...asking(1), action: '' })),
    anonymous: await refused(createClient({ baseUrl }).runtime.evaluate(asking(1))),
    ahead: await refused(client.followEvents({ tenantId, after: 1_000_000 }).next()),
    key: thrown(() => createClient({ baseUrl, credential: apiKey })),
  };
}

/** Returns the id of the first event of a stream, and interrupts the stream. */
async function eventId(url: string, headers: Record<string, string>): Promise<string> {
  const answer = await fetch(url, { headers: { accept: 'text/event-stream', ...headers } });
  const reader = answer.body?.getReader();
  const decoder = new TextDecoder();
  let text = '';
  while (reader) {
    const { value, done } = await reader.read();
    text += decoder.decode(value, { stream: !done });
    const id = /^id: (\d+)\n/m.exec(text)?.[1];
    if (id === undefined && !done) continue;
    await reader.cancel();
    return id ?? text;
  }
  return `status ${answer.status}`;
}

function thrown(act: () => unknown): string {
  try {
    return String(act());
  } catch (error) {
    return error instanceof Error ? error.name : String(error);
  }
}

const setup = await (await fetch('/setup')).json() as Setup;
const result = await run(setup).catch((error: unknown) => ({ error: String(error) }));
await fetch('/result', { method: 'POST', body: JSON.stringify(result) });
