// Performs the main tasks of users, from the first page to the resulting record in the API, with
// and without scripts.
import { strict as assert } from 'node:assert';
import { before, describe } from 'node:test';
import { APPROVER, AUDITOR, OPERATOR, OWNING, scenario, signIn, signedIn } from './browser.mjs';
import { faults } from './screen.mjs';
import { approval, held, owner } from './service.mjs';

const amount = (text) => new RegExp(text.replaceAll(' ', '\\s'));
const heading = (page, name) => page.getByRole('heading', { level: 1, name }).waitFor();

function tasks(javaScriptEnabled) {
  const how = javaScriptEnabled ? '' : ', without a script';
  const as = (name, path) => signedIn(name, path, { javaScriptEnabled });
  const asNew = (name, path) => signIn(name, path, { javaScriptEnabled });
  const job = (name, run) => scenario(name + how, run);
  // Pages to which no link leads must meet the same requirements as the screens in
  // `screens.test.mjs`. Without scripts axe can't run, but the pages are the same.
  const isGood = async (page) => javaScriptEnabled && assert.deepEqual(await faults(page), []);

  job('a link leads to the request, and two steps approve it', async () => {
    const id = await held(25_000);
    // A user who is not signed in must first sign in.
    const page = await asNew(APPROVER, `/console/approvals/${id}`);
    await page.getByRole('heading', { level: 1, name: amount('invoice-bot wants to do payment.execute for 25 000.00 EUR') }).waitFor();
    for (const shown of ['context.amount', 'context.jurisdiction', 'purpose']) {
      await page.getByRole('rowheader', { name: shown, exact: true }).waitFor();
    }
    await page.getByRole('link', { name: 'Approve…' }).click();
    await heading(page, 'Approve this payment.execute?');
    await page.getByRole('button', { name: amount('Approve 25 000.00 EUR') }).click();
    await page.getByText('You approved this').waitFor();
    await isGood(page);
    const { state, acts } = await approval(id);
    assert.deepEqual([state, acts.length, acts[0].name], ['approved', 1, 'approver@acme.example']);
  });

  job('a decline needs a reason', async () => {
    const id = await held(25_001);
    const page = await as(APPROVER, `/console/approvals/${id}`);
    await page.getByRole('link', { name: 'Decline…' }).click();
    await page.getByRole('button', { name: /^Decline/ }).click();
    assert.equal((await approval(id)).state, 'pending');
    await page.getByLabel('Why').fill('   ');
    await page.getByRole('button', { name: /^Decline/ }).click();
    await page.getByRole('alert').getByText('Give a reason').waitFor();
    await isGood(page);
    await page.getByLabel('Why').fill('invoiced twice');
    await page.getByRole('button', { name: /^Decline/ }).click();
    await page.getByText('You declined this').waitFor();
    const { state, acts } = await approval(id);
    assert.deepEqual([state, acts[0].comment], ['declined', 'invoiced twice']);
  });

  job('those that were opened are approved at once', async () => {
    const ids = [await held(11_000), await held(12_000.5), await held(13_000)];
    const page = await as(APPROVER);
    const box = (id) => page.locator(`input[name=id][value="${id}"]`);
    for (const id of ids.slice(0, 2)) {
      await page.locator(`a.what[href$="${id}"]`).click();
      await page.getByRole('navigation').getByRole('link', { name: 'Approvals' }).click();
      await box(id).waitFor();
    }
    assert.equal(await box(ids[2]).count(), 0, 'what was not opened cannot be selected');
    for (const id of ids.slice(0, 2)) await box(id).check();
    await page.getByRole('button', { name: 'Approve selected…' }).click();
    await heading(page, 'Approve these 2 requests?');
    for (const text of ['11 000.00 EUR', '12 000.50 EUR', '23 000.50 EUR']) {
      await page.getByRole('cell', { name: amount(`^${text}$`) }).waitFor();
    }
    await isGood(page);
    await page.getByRole('button', { name: amount('Approve 2 requests, 23 000.50 EUR') }).click();
    await heading(page, 'Approved 2 of 2 requests');
    await isGood(page);
    const states = await Promise.all(ids.map(async (id) => (await approval(id)).state));
    assert.deepEqual(states, ['approved', 'approved', 'pending']);
  });

  job('of two tabs the later does nothing, and says what has changed', async () => {
    const id = await held(25_002);
    const first = await as(APPROVER, `/console/approvals/${id}`);
    const second = await first.context().newPage();
    await second.goto(`/console/approvals/${id}/decline`);
    await first.getByRole('link', { name: 'Approve…' }).click();
    await first.getByRole('button', { name: /^Approve/ }).click();
    await first.getByText('You approved this').waitFor();
    await second.getByLabel('Why').fill('too late');
    await second.getByRole('button', { name: /^Decline/ }).click();
    await heading(second, 'Not declined');
    await second.getByRole('heading', { level: 2, name: 'This has changed' }).waitFor();
    await second.getByText('No change was made.').waitFor();
    await second.getByRole('row', { name: 'pending approved' }).waitFor();
    await isGood(second);
    assert.equal((await approval(id)).state, 'approved');
  });

  job('an approval is withdrawn', async () => {
    const id = await held(25_003);
    const page = await as(APPROVER, `/console/approvals/${id}`);
    await page.getByRole('link', { name: 'Approve…' }).click();
    await page.getByRole('button', { name: /^Approve/ }).click();
    await page.getByRole('link', { name: 'Withdraw…' }).click();
    await page.getByLabel('Why').fill('too early');
    await isGood(page);
    await page.getByRole('button', { name: /^Withdraw/ }).click();
    await page.getByText('You withdrew this approval').waitFor();
    assert.equal((await approval(id)).state, 'void');
  });

  job('who may not decide is told why, and has no button', async () => {
    const id = await held(25_004);
    for (const [name, why] of [[OWNING, 'you own invoice-bot'], [AUDITOR, 'your role reads requests']]) {
      const page = await as(name, `/console/approvals/${id}`);
      await page.getByText('Somebody else must decide this:').waitFor();
      await page.getByText(why).first().waitFor();
      assert.equal(await page.getByRole('link', { name: 'Approve…' }).count(), 0, name);
      await isGood(page);
    }
  });

  job('a filter is an address', async () => {
    const page = await as(APPROVER);
    const filter = page.locator('.filter > summary');
    await filter.click();
    await page.getByLabel('State').selectOption('declined');
    await page.getByRole('button', { name: 'Show' }).click();
    await page.waitForURL(/[?&]state=declined/);
    await page.getByRole('link', { name: /^Remove the filter Declined/ }).waitFor();
    await filter.click();
    assert.equal(await page.getByLabel('State').inputValue(), 'declined');
    await page.getByRole('link', { name: 'Clear' }).click();
    await page.waitForURL((url) => url.search === '');
  });

  job('the owner looks at one tenant', async () => {
    const page = await asNew(OPERATOR);
    const session = async () => (await page.context().cookies()).find(({ name }) => /session$/.test(name)).value;
    const before = await session();
    await page.locator('.person > summary').click();
    await page.getByRole('link', { name: 'Choose a tenant' }).click();
    await page.getByRole('button', { name: /^Acme/ }).click();
    await page.locator('.person').getByText('acme', { exact: true }).waitFor();
    assert.notEqual(await session(), before, 'the session goes on under another cookie');
  });

  job('who signs out is out, in every tab', async () => {
    const page = await asNew(APPROVER);
    // The list of a session that has not opened a request.
    await isGood(page);
    const tab = await page.context().newPage();
    await tab.goto('/console/approvals');
    await page.locator('.person > summary').click();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await heading(page, 'You are signed out');
    await isGood(page);
    await tab.goto('/console/approvals');
    assert.match(tab.url(), /\/dev-idp\/authorize/);
  });
}

/** Times are shown in the browser's zone, with the time in UTC as their title. */
async function isLocal(id) {
  const page = await signedIn(APPROVER, `/console/approvals/${id}`, { timezoneId: 'Australia/Eucla' });
  const time = page.locator('main time[title$=" UTC"]').first();
  const shown = await time.textContent();
  assert.match(shown, /^\d+ [A-Z][a-z]+ \d{4}, \d\d:\d\d GMT\+8:45$/);
  assert.equal(Date.parse(shown.replace('+8:45', '+0845')), Date.parse(await time.getAttribute('title')));
  await page.getByText('Times are in the zone Australia/Eucla.').waitFor();
  assert.deepEqual(await faults(page), []);
}

async function isNotDecided(id) {
  const [page, without] = await Promise.all([true, false].map(async (javaScriptEnabled) => {
    const page = await signedIn(APPROVER, `/console/approvals/${id}`, { javaScriptEnabled });
    await page.getByRole('link', { name: 'Approve…' }).click();
    await heading(page, 'Approve this payment.execute?');
    return page;
  }));
  await page.waitForTimeout(Math.max(0, Date.parse((await approval(id)).expires_at) - Date.now() + 2000));
  await page.getByText('it can no longer be decided').first().waitFor();
  const button = { name: /^Approve/ };
  assert.ok(await page.getByRole('button', button).isDisabled());
  assert.deepEqual(await faults(page), []);
  await without.getByRole('button', button).click();
  await without.getByText('No change was made.').waitFor();
  await page.goto(`/console/approvals/${id}`);
  await page.getByText('Expired').first().waitFor();
  assert.equal(await page.getByRole('link', { name: 'Approve…' }).count(), 0);
  assert.equal((await approval(id)).acts.length, 0);
}

/** A request that lasts a minute, the shortest time that a tenant can set. */
async function shortly(amount) {
  const lasting = (approval_ttl_seconds) => owner.patch('/api/v1/tenants/acme', { approval_ttl_seconds });
  await lasting(60);
  try {
    return await held(amount);
  } finally {
    await lasting(null);
  }
}

// The expiry takes a minute, during which the tasks are performed one after another: they share the list of requests.
describe('tasks', { concurrency: 2 }, () => {
  let expiring;
  // Until it is made, each new request of the tenant lasts only a minute.
  before(async () => { expiring = await shortly(25_005); });
  scenario('what has expired is not decided', () => isNotDecided(expiring));
  scenario('times are local', () => isLocal(expiring));
  describe('with and without scripts', { concurrency: 1 }, () => [true, false].forEach(tasks));
});
