// Texts written by agents and others are shown unchanged, and never become part of a page's code.
import { strict as assert } from 'node:assert';
import { ADMIN, APPROVER, OPERATOR, onPages, scenario, signedIn } from './browser.mjs';
import { kind, screens } from './found.mjs';
import { TENANT, held, newAgent, owner } from './service.mjs';

const MARK = 'data-hostile';
/** Markup, a script URL, a right-to-left override, and an invisible character. */
const HOSTILE = `"'><script>document.documentElement.setAttribute('${MARK}','')</script><img src=x onerror=alert(1)>`
  + '{{7*7}}</textarea></title>javascript:alert(1)\u202efdp.exe\u200b';
/** The text as it must be displayed. */
const SEEN = HOSTILE.replaceAll('\u202e', '⟨U+202E⟩').replaceAll('\u200b', '⟨U+200B⟩');

/** Creates an agent with this text as its display name. */
async function hostileAgent() {
  const agent = await newAgent({ name: `hostile-${Date.now()}`, display_name: HOSTILE, notes: HOSTILE });
  await owner.post('/api/v1/delegations', {
    tenant_id: TENANT, delegator_id: agent.owner_principal_id, delegate_id: agent.id, actions: ['payment.*'],
    purposes: ['invoice-settlement'], jurisdictions: ['DE'], max_amount: '50000', currency: 'EUR',
  });
  return agent.id;
}

/** Returns the effects of a hostile text on a page. The list is empty if the text is only displayed. */
function made(mark) {
  const found = [];
  const all = document.querySelectorAll('*');
  for (const element of all) {
    for (const { name, value } of element.attributes) {
      if (/^on/i.test(name)) found.push(`${name} in ${element.cloneNode().outerHTML}`);
      if (['href', 'src', 'action', 'formaction'].includes(name) && /^\s*(javascript|data|vbscript):/i.test(value)) {
        found.push(`${name}=${value}`);
      }
    }
  }
  const scripts = [...document.scripts].filter(({ src }) => !/^\/(console|theme)\//.test(new URL(src || 'x:').pathname));
  if (scripts.length > 0) found.push(`${scripts.length} scripts`);
  if (document.querySelector('img:not([src="/theme/icon.svg"]), iframe, object, embed')) found.push('something embedded');
  if (document.documentElement.hasAttribute(mark)) found.push('a script has run');
  // The value of a field is shown unchanged, and a note next to it lists the hidden characters.
  const shown = document.documentElement.cloneNode(true);
  for (const field of shown.querySelectorAll('input, textarea, option')) field.remove();
  if (/[\u202e\u200b]/.test(shown.outerHTML)) found.push('a hidden character');
  return found;
}

scenario('every text of a request is shown, and does nothing', async (t) => {
  const subject = await hostileAgent();
  const name = HOSTILE.replace(/[^\x20-\x7e]/g, '');
  const id = await held(25_200, {
    subject,
    context: { note: HOSTILE, [HOSTILE]: 'as a name', deep: [{ [name]: [HOSTILE] }], long: HOSTILE.repeat(9) },
  });
  await owner.post('/api/v1/tenants', { name: HOSTILE, slug: `hostile-${Date.now()}`, notes: HOSTILE });
  const page = await signedIn(APPROVER, `/console/approvals/${id}`);
  const row = page.getByRole('row').filter({ has: page.getByRole('rowheader', { name: 'context.note', exact: true }) });
  assert.equal(await row.getByRole('cell').innerText(), SEEN);
  assert.ok((await page.locator('main').innerText()).includes(SEEN.slice(0, 40)));
  await page.getByText(`is “${SEEN}”`).waitFor();
  await page.goto(`/console/approvals/${id}/decline`);
  await page.getByLabel('Why').fill(HOSTILE);
  await page.getByRole('button', { name: /^Decline/ }).click();
  await page.getByText('You declined this').waitFor();
  assert.ok((await page.locator('blockquote').allInnerTexts()).includes(SEEN));
  assert.deepEqual(await page.evaluate(made, MARK), []);
  for (const query of [`state=${encodeURIComponent(HOSTILE)}`, `state=declined&agent=${encodeURIComponent(HOSTILE)}`]) {
    await page.goto(`/console/approvals?${query}`);
    assert.deepEqual(await page.evaluate(made, MARK), [], query);
  }
  for (const person of [APPROVER, ADMIN, OPERATOR]) {
    const paths = await screens(await signedIn(person));
    await onPages(person, paths, async (page, path) => {
      await page.goto(path);
      assert.deepEqual(await page.evaluate(made, MARK), [], kind(path));
    });
  }
  t.diagnostic('every kind of page, as three people');
});
