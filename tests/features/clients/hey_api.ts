// Uses the client that hey-api generates, with its client for fetch.

import { randomUUID } from 'node:crypto';
import { createClient } from './client/client';
import { appApproveApproval, appGetApproval, createPrincipal, evaluate, gatewayWatchDecision } from './client';
import type { DecisionUpdate } from './client';

function client(token: string) {
  return createClient({ baseUrl: process.env.URL, auth: process.env[token], throwOnError: true });
}

async function main(): Promise<void> {
  const name = `bot-${randomUUID().slice(0, 8)}`;
  const created = await createPrincipal<true>({
    client: client('OWNER'),
    body: { tenant_id: 'svc:tenant:acme', principal_class: 'agent', name, display_name: 'Bot' },
  });
  console.log('created', created.data.principal.principal_class);

  const agent = client('KEY');
  const { data: held } = await evaluate<true>({
    client: agent,
    body: {
      subject: 'svc:agent:acme:invoice-bot',
      action: 'payment.execute',
      purpose: 'invoice-settlement',
      context: { amount: 25000.5, currency: 'EUR', jurisdiction: 'DE' },
    },
  });
  console.log('decided', held.decision, held.reason_code);

  const approver = client('APPROVER');
  const path = { id: held.approval_id ?? '' };
  const { data: pending } = await appGetApproval<true>({ client: approver, path });
  const { data: approved } = await appApproveApproval<true>({
    client: approver,
    path,
    body: { comment: 'The invoice is right.', request_digest: pending.approval.request_digest },
  });
  console.log('approved', approved.approval.state);

  const end = new AbortController();
  const { stream } = await gatewayWatchDecision({
    client: agent,
    path: { decision_id: held.decision_id },
    // Without this header the service sends lines.
    headers: { accept: 'text/event-stream' },
    signal: end.signal,
  });
  // The types describe a whole event, but the client returns its parsed data.
  const { value } = await stream.next();
  end.abort();
  const first = value as unknown as DecisionUpdate;
  console.log('streamed', first.decision, first.approval_state);
}

main();
