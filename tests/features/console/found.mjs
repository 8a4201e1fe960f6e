// The console's screens, found by following its own links from the first page: one of each kind, so that a new
// screen is looked at without being named here.
import { BASE } from './service.mjs';

/** A path without what names a single record: `/console/approvals/{}`. */
export function kind(link) {
  const { pathname, searchParams } = new URL(link, BASE);
  const part = (text) => (/[:@%]|[0-9a-f]{16}|[\w-]{30}/i.test(text) ? '{}' : text);
  const names = [...new Set(searchParams.keys())].sort();
  return pathname.split('/').map(part).join('/') + (names.length > 0 ? `?${names}` : '');
}

// To sign in is no screen; a download is none either, and receipts are pages of their own.
const SCREENS = 'a[href^="/console"]:not([href^="/console/sign-"], [href^="/console/receipts/"], [download])';

/** Opens one page of each kind, which `visit` then looks at. */
export async function visitAll(page, visit) {
  const waiting = [new URL(page.url()).pathname];
  const seen = new Set();
  while (waiting.length > 0) {
    const path = waiting.shift();
    if (seen.has(kind(path))) continue;
    seen.add(kind(path));
    const answer = await page.goto(path);
    await visit(path, answer.status());
    const links = await page.locator(SCREENS).evaluateAll((all) => all.map((one) => one.getAttribute('href')));
    waiting.push(...links);
  }
}
