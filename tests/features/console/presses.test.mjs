// The number of presses that each task takes, and the time until its pages are painted.
import { strict as assert } from 'node:assert';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { ADMIN, APPROVER, AUDITOR, signedIn } from './browser.mjs';
import { task } from './presses.mjs';
import { TENANT, decided, held, newAgent, owner } from './service.mjs';

/** Wide enough for the search field in the header. */
const viewport = { width: 1440, height: 900 };
const at = (user) => () => signedIn(user, '/console', { viewport });
const link = (page, name) => page.getByRole('link', { name });
const button = (page, name) => page.getByRole('button', { name });
const menu = (page, name) => page.getByRole('navigation').getByRole('link', { name });
/** The header, which has Stop and the search on every page. */
const header = (page) => page.getByRole('banner');
const search = (page) => header(page).getByRole('searchbox');

// The index of facts has a decision within two minutes. Until then, other tasks run.
const INVOICE = `RE-${randomUUID()}`;
const paid = await decided(1_240, { context: { payee: 'Northwind Ltd', invoice: INVOICE } });

task('approve a request', { open: at(APPROVER), presses: 4 }, async (page, press) => {
  const id = await held(25_401);
  await press(menu(page, 'Approvals'));
  await press(page.locator(`a.what[href$="${id}"]`));
  await press(link(page, 'Approve…'));
  await press(button(page, /^Approve/));
  await page.getByText('You approved this').waitFor();
});

task('approve a request that a message links to', { open: at(APPROVER), presses: 2 }, async (page, press) => {
  await page.goto(`/console/approvals/${await held(25_402)}`);
  await press(link(page, 'Approve…'));
  await press(button(page, /^Approve/));
  await page.getByText('You approved this').waitFor();
});

task('decline a request', { open: at(APPROVER), presses: 2 }, async (page, press) => {
  await page.goto(`/console/approvals/${await held(25_403)}`);
  await press(link(page, 'Decline…'));
  await page.getByLabel('Why').fill('invoiced twice');
  await press(button(page, /^Decline/));
  await page.getByText('You declined this').waitFor();
});

const STOPPED = `stopped-${Date.now()}`;
const isStopped = async (id) => {
  const { stop_signals: all } = await owner.get(`/api/v1/stop-signals?tenant_id=${TENANT}&limit=500`);
  return all.some(({ actor_id: actor, state }) => actor === id && state === 'active');
};
let agent;

task('stop an agent from its page', { open: at(ADMIN), presses: 2 }, async (page, press) => {
  agent = await newAgent({ name: STOPPED, display_name: 'Pays twice' });
  await page.goto(`/console/agents/${encodeURIComponent(agent.id)}`);
  await press(header(page).getByRole('link', { name: `Stop ${STOPPED}`, exact: true }));
  assert.equal(await isStopped(agent.id), false);
  await press(page.getByRole('button', { name: `Stop ${STOPPED}`, exact: true }));
  await page.getByText(`${STOPPED} is stopped. Every request for it is denied.`, { exact: true }).waitFor();
  assert.equal(await isStopped(agent.id), true);
});

task('release a stopped agent, with a reason', { open: at(ADMIN), presses: 4 }, async (page, press) => {
  await press(header(page).getByRole('link', { name: 'Stop', exact: true }));
  // The agent is also in the list of agents that can be stopped.
  const stopped = page.getByRole('region', { name: 'Stopped now', exact: true });
  await press(stopped.getByRole('link', { name: STOPPED, exact: true }));
  await press(page.getByRole('link', { name: 'Release…', exact: true }));
  await page.getByLabel('Reason', { exact: true }).fill('the bank has confirmed');
  await press(page.getByRole('button', { name: `Release ${STOPPED}`, exact: true }));
  await page.getByText(`${STOPPED} is released. Its authority applies again, unless another stop suspends it.`).waitFor();
  await page.getByText('the bank has confirmed', { exact: true }).waitFor();
  assert.equal(await isStopped(agent.id), false);
});

task('stop any agent', { open: at(ADMIN), presses: 3 }, async (page, press) => {
  await press(header(page).getByRole('link', { name: 'Stop', exact: true }));
  const agents = page.getByRole('region', { name: 'Stop an agent', exact: true });
  await press(agents.getByRole('link', { name: STOPPED, exact: true }));
  await press(page.getByRole('button', { name: `Stop ${STOPPED}`, exact: true }));
  await page.getByText(`${STOPPED} is stopped. Every request for it is denied.`, { exact: true }).waitFor();
});

task('try a request on the policies in force', { open: at(ADMIN), presses: 3 }, async (page, press) => {
  await press(menu(page, 'Policies'));
  await press(link(page, 'Try a request…'));
  const values = {
    Agent: 'svc:agent:acme:invoice-bot', Action: 'payment.execute', Purpose: 'invoice-settlement',
    Amount: '25000', Currency: 'EUR', Place: 'DE',
  };
  for (const [name, value] of Object.entries(values)) await page.getByLabel(name, { exact: true }).fill(value);
  await press(page.getByRole('button', { name: 'Try it', exact: true }));
  await page.getByRole('heading', { name: /^It would be held/ }).waitFor();
});

const isDecision = (url) => decodeURIComponent(url.pathname) === `/console/decisions/${paid.decision_id}`;

task('find a decision by its id', { open: at(AUDITOR), presses: 1 }, async (page, press) => {
  await search(page).fill(paid.decision_id);
  await press(search(page), 'Enter');
  await page.waitForURL(isDecision);
  await page.getByRole('heading', { level: 1, name: /invoice-bot asked to do payment\.execute/ }).waitFor();
});

task('find an agent by its id', { open: at(AUDITOR), presses: 1 }, async (page, press) => {
  await search(page).fill(agent.id);
  await press(search(page), 'Enter');
  await page.getByRole('heading', { level: 1, name: `What ${STOPPED} may do` }).waitFor();
});

/** Waits until the index has the decision. */
async function indexed() {
  for (;;) {
    const { decisions } = await owner.get(`/api/v1/search?tenant_id=${TENANT}&q=document:${INVOICE}`);
    if (decisions.length > 0) return;
    await sleep(1_000);
  }
}

task('find a decision by its invoice', { open: at(AUDITOR), presses: 2, timeout: 240_000 }, async (page, press) => {
  await indexed();
  await search(page).fill(INVOICE);
  await press(search(page), 'Enter');
  await press(page.getByRole('main').getByRole('link', { name: 'invoice-bot payment.execute' }));
  await page.waitForURL(isDecision);
});
