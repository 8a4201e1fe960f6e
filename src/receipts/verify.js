// Checks the record on this page: its digest, its id, and its signature by a published key.
// The rest of the page is plain HTML and needs no script.

const SHAPES = {
  verified: "M12 2a10 10 0 1 1 0 20 10 10 0 1 1 0-20M7 12.5l3.5 3.5 6.5-8",
  failed: "M8 2h8l6 6v8l-6 6H8l-6-6V8zM8.5 8.5l7 7M15.5 8.5l-7 7",
  unchecked: "M12 2l10 10-10 10L2 12zM12 7v6M12 16.5h.01",
};

// The check could not be made: the record is neither verified nor refuted.
class Unchecked extends Error {}

const element = document.getElementById("record");
// textContent decodes the HTML escapes and ignores <wbr>. The result is the signed text. If hidden
// characters are shown escaped, `data-exact` has the exact text.
const record = element.dataset.exact ?? element.textContent;

function check(holds, otherwise) {
  if (!holds) throw new Error(otherwise);
}

async function verify({ decisionId, digest, signature, kid }) {
  const cannot = "verify the record with the command below.";
  // Browsers do not offer WebCrypto to pages that came over plain HTTP.
  if (!window.isSecureContext) {
    throw new Unchecked(`This page came without TLS, so this browser cannot verify Ed25519; ${cannot}`);
  }

  const bytes = new TextEncoder().encode(record);
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  const hex = Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
  check(digest === `sha256:${hex}`, "the record’s SHA-256 is not the record digest shown.");

  // Date.parse portably supports only milliseconds, and the id contains only milliseconds.
  const decided = JSON.parse(record).evaluated_at.replace(/(\.\d{3})\d+/, "$1");
  const time = Date.parse(decided).toString(16).padStart(12, "0");
  const id = decisionId.replace("svc:decision:", "");
  check(id.slice(0, 12) === time, "the decision’s id does not begin with the record’s time.");
  check(id.slice(12) === hex.slice(0, 52), "the decision’s id does not end with the record’s digest.");

  const jwk = (await publishedKeys()).find((key) => key.kid === kid);
  check(jwk, `the service publishes no key ${kid}.`);
  // A key with another purpose must not be accepted for records.
  check(kid.startsWith("svc-evidence-"), `the key ${kid} is not an evidence key.`);
  check(jwk.kty === "OKP" && jwk.crv === "Ed25519", `the key ${kid} is not an Ed25519 key.`);

  const { kty, crv, x } = jwk;
  const key = await crypto.subtle.importKey("jwk", { kty, crv, x }, "Ed25519", false, ["verify"])
    .catch((error) => {
      if (error.name !== "NotSupportedError") throw error;
      throw new Unchecked(`This browser cannot verify Ed25519; ${cannot}`);
    });
  check(/^[A-Za-z0-9+/]{86}==$/.test(signature), "the signature is not 64 bytes in base64.");
  const signed = Uint8Array.from(atob(signature), (letter) => letter.charCodeAt(0));
  const good = await crypto.subtle.verify("Ed25519", key, signed, bytes);
  check(good, `the signature is not by key ${kid} over this record.`);

  const revoked = jwk.revoked_at
    ? ` The key was revoked at ${jwk.revoked_at}: rely on it only for what was sealed before.`
    : "";
  return `Signature verified in this browser, with key ${kid}.${revoked}`;
}

async function publishedKeys() {
  try {
    const answer = await fetch("/.well-known/jwks.json", { signal: AbortSignal.timeout(10_000) });
    check(answer.ok, `status ${answer.status}`);
    const { keys } = await answer.json();
    check(Array.isArray(keys), "no key set");
    return keys;
  } catch (error) {
    throw new Unchecked(
      `The published keys could not be fetched (${error.message}). The record matches its digest and its id; `
      + "its signature is not yet verified.",
    );
  }
}

function show(state, text) {
  const strip = document.getElementById("verification");
  strip.dataset.state = state;
  strip.querySelector("path").setAttribute("d", SHAPES[state]);
  document.getElementById("verification-text").textContent = text;
}

verify(element.dataset).then(
  (text) => show("verified", text),
  (error) => error instanceof Unchecked
    ? show("unchecked", error.message)
    : show("failed", `Not verified: ${error.message}`),
);

const print = document.getElementById("print");
print.hidden = false;
print.addEventListener("click", () => window.print());

// Opens the details for printing.
window.addEventListener("beforeprint", () => {
  document.querySelector("details").open = true;
});

if (navigator.clipboard) {
  const copy = document.getElementById("copy");
  const copied = document.getElementById("copied");
  copy.hidden = false;
  copy.addEventListener("click", async () => {
    copied.textContent = await navigator.clipboard.writeText(record)
      .then(() => "Copied", () => "The browser refused to copy");
  });
}
