// Finds the console's screens by following its links from the first page, and keeps one of each
// kind. A new screen is therefore tested without being listed here.
import { BASE } from './service.mjs';

/** A path with placeholders for record ids: `/console/approvals/{}`. */
export function kind(link) {
  const { pathname, searchParams } = new URL(link, BASE);
  const part = (text) => (/[:@%]|[0-9a-f]{16}|[\w-]{30}/i.test(text) ? '{}' : text);
  const names = [...new Set(searchParams.keys())].sort();
  return pathname.split('/').map(part).join('/') + (names.length > 0 ? `?${names}` : '');
}

// Sign-in pages, receipts and downloads are not screens.
const SCREENS = 'a[href^="/console"]:not([href^="/console/sign-"], [href^="/console/receipts/"], [download])';

/** Opens one page of each kind and passes it to `visit`. */
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
