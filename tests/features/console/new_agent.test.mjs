// A new agent, from the list of agents to its first decision.
import { strict as assert } from 'node:assert';
import { execFileSync } from 'node:child_process';
import { OPERATOR, signIn } from './browser.mjs';
import { task } from './presses.mjs';
import { faults } from './screen.mjs';

for (const javaScriptEnabled of [true, false]) {
  const how = javaScriptEnabled ? '' : ', without a script';
  const open = () => signIn(OPERATOR, '/console/agents', { javaScriptEnabled });
  task(`a new agent gets its first decision${how}`, { open, presses: 5, javaScriptEnabled }, async (page, press) => {
    const isGood = async () => javaScriptEnabled && assert.deepEqual(await faults(page), []);
    const link = (name) => press(page.getByRole('link', { name }));
    const button = (name) => press(page.getByRole('button', { name }));
    const agent = `helper-${javaScriptEnabled ? 'with' : 'without'}`;
    await link('New agent…');
    const tenant = page.getByLabel('Tenant (required)');
    if (await tenant.count() > 0) await tenant.fill('acme');
    await page.getByLabel('Name (required)').fill(agent);
    await page.getByLabel('What it does').fill('Helps with invoices');
    await page.getByLabel('Owner').selectOption({ label: 'Head of finance' });
    await isGood();
    await button('Continue');
    await page.getByLabel('On behalf of').selectOption({ label: 'Head of finance' });
    await page.getByLabel('Others, one in each line').fill('payment.execute');
    await page.getByRole('checkbox', { name: 'invoice-settlement' }).check();
    await page.getByLabel('Each time').fill('5000');
    await page.getByLabel('Currency').fill('EUR');
    await page.getByLabel('Places').fill('DE');
    await page.getByLabel('Until').fill('2040-12-31');
    await isGood();
    await button('Continue');
    const result = `${agent} may run payment.execute up to 5 000.00 EUR each time, in DE, for invoice-settlement, `
      + 'until 31 Dec 2040, on behalf of Head of finance.';
    await page.getByText(result).waitFor();
    await isGood();
    await button('Create the agent, its delegation and its key');
    await page.getByRole('heading', { level: 1, name: `${agent} is ready` }).waitFor();
    await page.getByText(result).waitFor();
    assert.equal(await page.getByRole('button', { name: 'Copy' }).count(), javaScriptEnabled ? 3 : 0);
    await isGood();
    const command = await page.locator('pre').first().textContent();
    const answer = JSON.parse(execFileSync('bash', ['-c', command], { encoding: 'utf8' }));
    assert.equal(answer.decision, 'allow', JSON.stringify(answer));
    await link('Its decisions');
    await page.locator(`main a[href*="${answer.decision_id}"], main a[href*="${encodeURIComponent(answer.decision_id)}"]`).first().waitFor();
  });
}
