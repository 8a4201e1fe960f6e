// Uses the client that openapi-generator generates for TypeScript (typescript-fetch).

import { randomUUID } from 'node:crypto';
import { ApprovalApi, Configuration, DecisionUpdateFromJSON, PrincipalApi, RuntimeApi } from './client';

function configuration(token: string): Configuration {
  return new Configuration({ basePath: process.env.URL, accessToken: process.env[token] });
}

async function main(): Promise<void> {
  const name = `bot-${randomUUID().slice(0, 8)}`;
  const { principal } = await new PrincipalApi(configuration('OWNER')).createPrincipal({
    principalInput: { tenantId: 'svc:tenant:acme', principalClass: 'agent', name, displayName: 'Bot' },
  });
  console.log('created', principal.principalClass);

  const runtime = new RuntimeApi(configuration('KEY'));
  const held = await runtime.evaluate({
    evaluateRequestInput: {
      subject: 'svc:agent:acme:invoice-bot',
      action: 'payment.execute',
      purpose: 'invoice-settlement',
      context: { amount: 25000.5, currency: 'EUR', jurisdiction: 'DE' },
    },
  });
  console.log('decided', held.decision, held.reasonCode);

  const approvals = new ApprovalApi(configuration('APPROVER'));
  const id = held.approvalId ?? '';
  const { approval } = await approvals.appGetApproval({ id });
  const approved = await approvals.appApproveApproval({
    id,
    appApproveApprovalRequest: { comment: 'The invoice is right.', requestDigest: approval.requestDigest },
  });
  console.log('approved', approved.approval.state);

  const { raw } = await runtime.gatewayWatchDecisionRaw({ decisionId: held.decisionId });
  const reader = raw.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  while (!text.includes('\n')) text += (await reader.read()).value ?? '\n';
  await reader.cancel();
  const first = DecisionUpdateFromJSON(JSON.parse(text.split('\n')[0]));
  console.log('streamed', first.decision, first.approvalState);
}

main();
