// runs: embedded, postgres

import { Provider } from '../../../features/tokens/provider.ts';
import { createOwnDatabase } from '../../../support/database.ts';
import { databaseForEach } from '../../../support/fixtures.ts';
import { expect, test } from '../../../support/jest.ts';
import { doctor, ok } from '../../support/doctor.ts';

const database = databaseForEach(createOwnDatabase);

test('an identity provider is asked for its keys; one that does not answer, or has none, is a warning', async () => {
  const provider = new Provider();
  await provider.open();
  await provider.addKey('second', 'RS256');
  const env = { ...database.env, ...provider.env };
  const reachable = await doctor(env);
  expect(reachable.checks).toMatchObject({
    tokens: ok(`${provider.issuer} signs with P-256, RSA`),
  });
  provider.instead = (response, path) =>
    path === '/jwks' ? response.end('{"keys":[]}') : undefined;
  expect((await doctor(env)).checks.tokens).toMatchObject({
    state: 'warning',
    found: 'The provider has no keys.',
  });
  provider.instead = (response) => response.end('<html>');
  const { code, warnings, checks } = await doctor(env);
  await provider.close();
  // An empty database has a warning of its own.
  expect({ code, warnings }).toEqual({
    code: 0,
    warnings: reachable.warnings + 1,
  });
  expect(checks.tokens).toEqual({
    state: 'warning',
    found: expect.stringMatching(
      /^http:.*\/openid-configuration cannot be read: Unexpected token '<'/,
    ),
    remedy: expect.stringContaining('JWT_ISSUER'),
  });
});
