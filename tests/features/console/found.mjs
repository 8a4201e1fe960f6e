// Finds the console's screens by following its links from the first page, and keeps one of each
// kind. A new screen is therefore tested without being listed here.
import { BASE } from './service.mjs';

/** Lists on which many filters can be combined. All combinations are one kind. */
const COMBINED = ['/console/approvals', '/console/decisions', '/console/agents'];

/** A path with placeholders for record ids: `/console/approvals/{}`. */
export function kind(link) {
  const { pathname, searchParams } = new URL(link, BASE);
  const part = (text) => (/[:@%]|[0-9a-f]{16}|[\w-]{30}/i.test(text) ? '{}' : text);
  const names = [...new Set(searchParams.keys())].sort();
  const query = names.length > 1 && COMBINED.includes(pathname) ? 'several' : names;
  return pathname.split('/').map(part).join('/') + (names.length > 0 ? `?${query}` : '');
}

// Sign-in pages, receipts and downloads are not screens.
const SCREENS = 'a[href^="/console"]:not([href^="/console/sign-"], [href^="/console/receipts/"], [download])';

/** Returns the path of one page of each kind that the user of `page` can reach. */
export async function screens(page) {
  const waiting = [new URL(page.url()).pathname];
  const found = new Map();
  while (waiting.length > 0) {
    const path = waiting.shift();
    if (found.has(kind(path))) continue;
    found.set(kind(path), path);
    // The service notes a request as read only if the page was not requested by a script. The page only parses it.
    const answer = await page.context().request.get(path);
    waiting.push(...await page.evaluate(linked, [await answer.text(), SCREENS]));
  }
  return [...found.values()];
}

function linked([text, wanted]) {
  const links = new DOMParser().parseFromString(text, 'text/html').querySelectorAll(wanted);
  return [...links].map((link) => link.getAttribute('href'));
}
