// Verifies webhook deliveries using only released libraries: standardwebhooks and jose. Reads a
// list of {suite, body, headers, url, secret, jwks} and prints whether each is genuine.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

import { createLocalJWKSet, jwtVerify } from 'jose';
import { Webhook } from 'standardwebhooks';

const suites = {
  'standard-webhooks/v1': async ({ body, headers, secret }) => new Webhook(secret).verify(body, headers),
  jwt: async ({ body, headers, url, jwks }) => {
    const expected = { audience: url, typ: 'svc-webhook+jwt', algorithms: ['EdDSA'] };
    const { payload } = await jwtVerify(headers['webhook-jwt'], createLocalJWKSet(jwks), expected);
    if (payload.body_sha256 !== createHash('sha256').update(body).digest('hex')) {
      throw new Error('the token is of another body');
    }
  },
};

const genuine = (one) =>
  suites[one.suite](one).then(
    () => true,
    (why) => {
      console.error(`${one.suite}: ${why}`);
      return false;
    },
  );

console.log(JSON.stringify(await Promise.all(JSON.parse(readFileSync(0, 'utf8')).map(genuine))));
