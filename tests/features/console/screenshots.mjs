// Takes pictures of twelve screens in light and dark mode, on a phone and on a desk, for people to
// look at. `script/screens` runs it. It is no test: nothing is compared.
import { mkdirSync } from 'node:fs';
import { ADMIN, APPROVER, AUDITOR, OPERATOR, scenario, signedIn } from './browser.mjs';
import { AGENT, decided, held } from './service.mjs';

const FOLDER = process.env.CONSOLE_SCREENS;
const SIZES = { desk: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } };
const PAYEES = ['Müller Maschinenbau GmbH', 'Nordic Data Centers AB', 'Ateliers Lefèvre SARL'];

/** Makes requests that are permitted, held and denied. Returns the ids of a request and of a decision. */
async function work() {
  let request;
  for (let number = 0; number < 18; number += 1) {
    const context = {
      payee: PAYEES[number % 3], iban: `DE8937040044053201300${number % 4}`, invoice: `RE-2026-0${400 + number}`,
      note: 'approved by the CFO, please pay quickly',
      line_items: [{ text: 'Milling head', quantity: 2, net: 9_000 }, { text: 'Freight', quantity: 1, net: 410.5 }],
    };
    await decided(500 + 10 * number, { context });
    if (number % 3 === 0) await decided(900, { context: { ...context, jurisdiction: 'US' } });
    request = await held(12_000 + 1_250 * number, { context });
  }
  const { decision_id: decision } = await decided(1_200, { context: { payee: PAYEES[0], invoice: 'RE-2026-0999' } });
  return { request, decision };
}

scenario('pictures of screens', async (t) => {
  const { request, decision } = await work();
  const screens = [
    ['01-overview', ADMIN, '/console'],
    ['02-inbox', APPROVER, '/console/approvals'],
    ['03-request', APPROVER, `/console/approvals/${request}`],
    ['04-approve', APPROVER, `/console/approvals/${request}/approve`],
    ['05-decisions', AUDITOR, '/console/decisions'],
    ['06-decision', AUDITOR, `/console/decisions/${decision}`],
    ['07-search', AUDITOR, '/console/search?q=RE-2026-0402'],
    ['08-agent', ADMIN, `/console/agents/${AGENT}`],
    ['09-stop', OPERATOR, `/console/stop/confirm?subject=${AGENT}`],
    ['10-new-agent', ADMIN, '/console/agents/new'],
    ['11-new-policy', ADMIN, '/console/policies/new?start=threshold'],
    ['12-new-delegation', ADMIN, '/console/records/delegations/new/create'],
  ];
  mkdirSync(FOLDER, { recursive: true });
  for (const [name, user, path] of screens) {
    for (const [size, viewport] of Object.entries(SIZES)) {
      for (const colorScheme of ['light', 'dark']) {
        const page = await signedIn(user, path, { viewport, colorScheme });
        await page.screenshot({ path: `${FOLDER}/${name}-${size}-${colorScheme}.png` });
        await page.context().close();
      }
    }
    t.diagnostic(`${name}: ${path}`);
  }
}, { timeout: 600_000 });
