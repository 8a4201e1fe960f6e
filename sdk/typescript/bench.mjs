// Measures what a permit costs beside a decision. Build the library first: npm run build.
// AGENT_AUTHORITY_URL, _API_KEY and _SUBJECT name a running service on the same machine.
import { Authority } from './dist/guard.js';

const [ROUNDS, CALLS] = [10, 100];
const question = {
  action: 'payment.execute',
  purpose: 'invoice-settlement',
  context: { amount: '1200.00', currency: 'EUR', jurisdiction: 'DE', arguments: { invoice: 'RE-416' } },
};
const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];

const authority = Authority.fromEnv();
const request = {
  action: question.action, purpose: question.purpose, subject: process.env.AGENT_AUTHORITY_SUBJECT,
  context: { ...question.context, amount: 1200 },
};
const ways = {
  // The decision alone: a call of the client, without checks.
  call: () => authority.client.decisions.evaluateDecision({ request: { ...request, includeRecord: true } }),
  decide: () => authority.decide(question),
  permit: async () => (await authority.permit(question)).run(() => 'done'),
};

const times = Object.fromEntries(Object.keys(ways).map((way) => [way, []]));
for (let round = 0; round < ROUNDS; round += 1) {
  for (const [way, call] of Object.entries(ways)) {
    for (let number = 0; number < CALLS; number += 1) {
      const began = performance.now();
      await call();
      // The first round warms up.
      if (round > 0) times[way].push(performance.now() - began);
    }
    await authority.flush();
  }
}
const base = median(times.call);
for (const [way, found] of Object.entries(times)) {
  const p50 = median(found);
  console.log(`${way.padEnd(8)}p50 ${p50.toFixed(2).padStart(6)} ms   +${(p50 - base).toFixed(2)} ms`);
}
