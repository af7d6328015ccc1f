// runs: citus-shards

import type { Module } from '#engine/api/module.js';
import { providerForAll } from '../../../features/tokens/provider.ts';
import { clinicModules } from '../../../modules/clinic/clinic.module.ts';
import { sql } from '../../../support/database-access.ts';
import { openStream } from '../../../support/events.ts';
import { beforeAll, expect, test } from '../../../support/jest.ts';
import { rest } from '../../../support/rest.ts';
import { citusLayout } from '../../../support/servers/citus-database.ts';
import { storeForAll } from '../../../support/store.ts';

const provider = providerForAll();
const env: Record<string, string> = {};
beforeAll(() =>
  Object.assign(env, provider.env, {
    JWT_TENANT: 'org',
    JWT_SCOPES:
      'clinic=clinic:write,portal=portal:write,sitters=sitters:write,all=clinic:all',
  }),
);
// The tables of a module with entities and migrations are distributed by id.
const [clinic, portal, sitters] = clinicModules as [Module, Module, Module];
const { migrations, ...unmigrated } = clinic;
const store = storeForAll(env, undefined, {
  more: [unmigrated, { ...portal, migrations: migrations ?? [] }, sitters],
});
const distribution = [
  'alter table stay drop constraint stay_clinic_patient_id_fkey',
  'alter table patient drop constraint patient_pkey, add primary key (clinic, id)',
  "select create_distributed_table('patient', 'clinic', shard_count := 4)",
];
beforeAll(async () => {
  for (const text of citusLayout ? distribution : [])
    await sql(store.database, text);
});

const ofCitus = citusLayout ? test : test.skip;

ofCitus.each(['clinic', 'portal', 'portal sitters'])(
  'rows of a table that is distributed by its tenant are changed and removed by its callers: %s (skipped without TEST_CITUS)',
  async (scope) => {
    const ask = (org: string, method: string, path = '', json?: object) =>
      rest(store, `/v1/patients${path}`, {
        method,
        json,
        key: provider.token({ sub: 'ann', org, scope }),
      });
    const dog = { name: `Rex of ${scope}`, kind: 'dog' };
    const { json: added } = await ask('a', 'POST', '', dog);
    const path = `/${added.id}`;
    const change = { version: 1, weight: 5 };
    expect((await ask('b', 'PATCH', path, change)).status).toBe(404);
    const { json } = await ask('a', 'PATCH', path, change);
    expect(json).toEqual({ ...added, ...change, version: 2 });
    expect((await ask('a', 'PATCH', path, change)).status).toBe(409);
    expect((await ask('b', 'DELETE', path)).status).toBe(404);
    expect((await ask('a', 'DELETE', path)).status).toBe(204);
    expect((await ask('a', 'GET', path)).status).toBe(404);
  },
);

ofCitus(
  'such a table has live lists of all tenants, also of several kinds (skipped without TEST_CITUS)',
  async () => {
    const key = provider.token({ sub: 'sue', org: 'x', scope: 'clinic all' });
    const path = '/v1/patients?kind_in=cat&kind_in=hen&after=0';
    const stream = await openStream(store, { method: 'GET', path, key });
    const names = ['Tom', 'Kit'];
    for (const [at, name] of names.entries()) {
      const of = { sub: 'ann', org: 'xy'[at], scope: 'clinic' };
      const json = { name, kind: 'cat' };
      const request = { method: 'POST', key: provider.token(of), json };
      await rest(store, '/v1/patients', request);
    }
    const events = await stream.until(2);
    expect(events.map(({ data }) => data.name)).toEqual(names);
    stream.close();
  },
);
