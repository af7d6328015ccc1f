import { databaseForAll } from '../../support/fixtures.ts';
import { expect, test } from '../../support/jest.ts';
import { startMeasured } from '../../support/metrics.ts';
import { eventually } from '../../support/process.ts';
import { linesOf } from '../../support/process-log.ts';
import { rest } from '../../support/rest.ts';
import { newKey, Provider } from '../tokens/provider.ts';

const database = databaseForAll();

test('a refused token has its reason in the metric and in the log; a provider that is away is no dependency that is up', async () => {
  const provider = new Provider();
  await provider.open();
  const other = await newKey('other');
  const first = { kid: 'first' };
  const refused = {
    unknown_key: provider.token({}, {}, other),
    signature: provider.token({}, first, other),
    expired: provider.token({ exp: 1_000_000_000 }),
    claims: provider.token({ aud: 'https://other.example' }),
    malformed: provider.token({}, { alg: 'none' }),
  };
  const withTokens = await startMeasured({ ...database.env, ...provider.env });
  const send = (key: string) => rest(withTokens, '/v1/pets', { key });
  for (const [reason, token] of Object.entries(refused)) {
    expect([reason, (await send(token)).status]).toEqual([reason, 401]);
  }
  const reasons = Object.keys(refused);
  const logged = () =>
    linesOf(withTokens.output.stdout).flatMap(({ reason }) => reason ?? []);
  // Other requests have lines, too: those that asked whether it is ready.
  await eventually(async () => logged().length >= reasons.length);
  expect(logged()).toEqual(reasons);
  const all = await withTokens.metrics();
  const counted = 'animal_store_auth_refusals_total{code="UNAUTHENTICATED"';
  for (const reason of reasons)
    expect(all.get(`${counted},reason="${reason}"}`)).toBe(1);
  const isUp = 'animal_store_dependency_up{dependency="provider"}';
  expect(all.get(isUp)).toBe(1);
  await provider.close();

  const alone = await startMeasured({ ...database.env, ...provider.env });
  expect((await rest(alone, '/v1/pets', { key: refused.claims })).status).toBe(
    503,
  );
  const later = await alone.metrics();
  const away = 'animal_store_auth_refusals_total{code="SERVICE_UNAVAILABLE"';
  expect(later.get(`${away},reason="provider"}`)).toBe(1);
  expect(later.get(isUp)).toBe(0);
});
