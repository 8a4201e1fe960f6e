// Verifies an evidence pack, an evidence bundle or a replay proof offline, by EVIDENCE.md.
//
// Usage: node verify.mjs FILE [--jwks FILE] [--checkpoint-key VKEY] [--require-trust]
// Needs Node 20 and the TypeScript library (sdk/typescript). Exit code: 0 valid, 1 invalid, 2 unreadable.
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { InvalidEvidence, UnreadableEvidence, verifyEvidence } from './evidence/evidence.js';

function options() {
  const text = { type: 'string' };
  const known = { jwks: text, 'checkpoint-key': text, 'require-trust': { type: 'boolean' } };
  try {
    const { values, positionals } = parseArgs({ options: known, allowPositionals: true });
    if (positionals.length === 1) return [values, positionals[0]];
  } catch (error) {
    throw new UnreadableEvidence(error.message);
  }
  throw new UnreadableEvidence('one FILE is needed');
}

function read(file) {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new UnreadableEvidence(error.message);
  }
}

try {
  const [asked, file] = options();
  const jwks = asked.jwks === undefined ? undefined : read(asked.jwks);
  const found = await verifyEvidence(read(file), { jwks, checkpointKey: asked['checkpoint-key'] });
  console.log(found);
  process.exitCode = Number(Boolean(asked['require-trust']) && found !== 'valid');
} catch (error) {
  const isInvalid = error instanceof InvalidEvidence;
  if (!isInvalid && !(error instanceof UnreadableEvidence)) throw error;
  console.log(`${isInvalid ? 'invalid' : 'unreadable'}: ${error.message}`);
  process.exitCode = isInvalid ? 1 : 2;
}
