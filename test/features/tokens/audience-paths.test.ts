import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openModules } from '#engine/api/module.js';
import type { Collection } from '#engine/api/resources/collection.js';
import { Call } from '#engine/call.js';
import { importFile } from '#engine/features/transfer/import.js';
import { Records } from '#engine/records/records.js';
import { Ownership } from '#engine/records/rows/ownership.js';
import { clinicModules } from '../../modules/clinic/clinic.module.ts';
import { PatientEntity, patient } from '../../modules/clinic/patient.ts';
import { sql } from '../../support/database-access.ts';
import { openStream } from '../../support/events.ts';
import { newFolder } from '../../support/folder.ts';
import { graphqlText } from '../../support/graphql.ts';
import { beforeAll, describe, expect, test } from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { citusLayout } from '../../support/servers/citus-database.ts';
import { storeForAll } from '../../support/store.ts';
import { callTool, rpc } from '../assistants/mcp.ts';
import { providerForAll } from './provider.ts';

/** Every path to the rows of two clinics, by staff, customers and support. */

const describeHere = citusLayout ? describe.skip : describe;

describeHere('a business with customers', () => {
  const provider = providerForAll();
  const env: Record<string, string> = {};
  beforeAll(() =>
    Object.assign(env, provider.env, {
      JWT_TENANT: 'org',
      MCP: 'true',
      GRAPHQL_FEDERATION: 'true',
      JWT_SCOPES:
        'clinic=clinic:write,portal=portal:write,sitters=sitters:write,support=clinic:all,pets=pets:write,views=portal:read',
    }),
  );
  const store = storeForAll(env, undefined, { more: clinicModules });
  const tokenOf = (org: string | undefined, sub: string, scope: string) =>
    provider.token({ org, sub, scope });
  const callers: Record<string, string> = {};
  const rows: Record<string, any> = {};
  const ask = async (
    caller: string,
    path: string,
    method = 'GET',
    json?: object,
    headers = {},
  ) =>
    rest(store, `/v1${path}`, {
      method,
      json,
      headers,
      key: callers[caller] ?? '',
    });
  const query = (caller: string, text: string) =>
    graphqlText(store, { query: text }, callers[caller] ?? '');
  const idsOf = (items: any[]) => items.map(({ id }) => Number(id));

  /** What each sees. */
  const seen: Record<string, string[]> = {
    'staff a': ['ann a', 'bea a', 'none a'],
    'ann a': ['ann a'],
    'bea a': ['bea a'],
    'sitter a': ['ann a'],
    'bea sits a': ['ann a', 'bea a'],
    'staff b': ['ann b'],
    'ann b': ['ann b'],
    support: ['ann a', 'bea a', 'none a', 'ann b'],
  };
  const others = (caller: string) =>
    Object.keys(rows).filter((name) => !seen[caller]?.includes(name));

  beforeAll(async () => {
    Object.assign(callers, {
      'staff a': tokenOf('a', 'staff', 'clinic'),
      'ann a': tokenOf('a', 'ann', 'portal'),
      'bea a': tokenOf('a', 'bea', 'portal'),
      'sitter a': tokenOf('a', 'sid', 'sitters'),
      'bea sits a': tokenOf('a', 'bea', 'portal sitters'),
      'staff b': tokenOf('b', 'staff', 'clinic'),
      'ann b': tokenOf('b', 'ann', 'portal'),
      support: tokenOf('a', 'sue', 'clinic support'),
      pets: tokenOf('a', 'ann', 'pets'),
      homeless: tokenOf(undefined, 'ann', 'portal'),
    });
    const add = async (by: string, name: string, input: object) => {
      const json = { name, kind: 'cat', weight: 5, ...input };
      const { json: row } = await ask(by, '/patients', 'POST', json);
      rows[name] = row;
    };
    await add('staff a', 'ann a', { login: 'ann', sitter: 'bea' });
    await add('bea a', 'bea a', {});
    await add('staff a', 'none a', {});
    await add('ann b', 'ann b', {});
    const { id, version } = rows['ann a'];
    // Of two sitters only the last remains.
    const change = { version, sitter: 'sid' };
    const path = `/patients/${id}`;
    rows['ann a'] = (await ask('staff a', path, 'PATCH', change)).json;
    seen['bea sits a'] = ['bea a'];
  });

  const each = () => Object.keys(seen);

  test('creations belong to their clinic, and to the customer who makes them', () => {
    const owners = Object.values(rows).map(({ clinic, login }) => [
      clinic,
      login,
    ]);
    expect(owners).toEqual([
      ['a', 'ann'],
      ['a', 'bea'],
      ['a', null],
      ['b', 'ann'],
    ]);
  });

  test('lists, totals, cursors and filters have the own rows only', async () => {
    for (const caller of each()) {
      const own = (seen[caller] ?? []).map((name) => rows[name]);
      for (const path of [
        ...['', '?kind=cat', '?after=0', '?kind_in=cat&kind_in=x'],
        ...['?weight_gte=5', '?sort=weight&kind=cat', '?before=999999'],
      ]) {
        const { json, headers } = await ask(
          caller,
          `/patients${path}`,
          'GET',
          undefined,
          { prefer: 'count=exact' },
        );
        expect(json).toEqual(own);
        expect(headers['x-total-count']).toBe(`${own.length}`);
      }
      // No parameter of a client says what it sees.
      const given = `${encodeURIComponent('#seen')}=[]`;
      expect((await ask(caller, `/patients?${given}`)).json).toEqual(own);
      for (const name of others(caller)) {
        const { json } = await ask(
          caller,
          `/patients?login=${rows[name].login}`,
        );
        expect(idsOf(json)).not.toContain(rows[name].id);
        const after = rows[name].id;
        const page = await ask(caller, `/patients?after=${after}`);
        expect(page.json).toEqual(own.filter(({ id }) => id > after));
      }
    }
  });

  test('rows of others are absent by their ids, on both APIs, as references and in tools', async () => {
    for (const caller of each()) {
      for (const name of others(caller)) {
        const { id, version } = rows[name];
        const path = `/patients/${id}`;
        const absent = {
          code: 'NOT_FOUND',
          status: 404,
          message: `There is no patient with the id ${id}.`,
        };
        const answers = [
          await ask(caller, path),
          await ask(caller, path, 'PATCH', { version, kind: 'x' }),
          await ask(caller, path, 'PATCH', { version: version + 1, kind: 'x' }),
          await ask(caller, path, 'DELETE'),
          await ask(caller, `${path}?version=${version + 1}`, 'DELETE'),
        ];
        for (const { json } of answers) expect(json).toEqual(absent);
        const { data, errors } = await query(
          caller,
          `{ patient(id: "${id}") { id } _entities(representations: [{ __typename: "Patient", id: "${id}" }]) { ... on Patient { id } } }`,
        );
        expect(errors).toBeUndefined();
        expect(data).toEqual({ patient: null, _entities: [null] });
        const key = callers[caller] ?? '';
        const target = { origin: store.origin, key };
        const result = await callTool(target, 'get_patient', {
          patientId: `${id}`,
        });
        expect(result.isError).toBe(true);
        const stay = { patientId: id, room: 'x' };
        for (const headers of [{}, { 'idempotency-key': `stay-${id}` }]) {
          const { json } = await ask(caller, '/stays', 'POST', stay, headers);
          expect(json.message).toBe(
            'patientId must be the id of one that exists.',
          );
        }
      }
    }
  });

  test('a relation shows what its own collection shows', async () => {
    const { id } = rows['ann a'];
    const input = { patientId: id, room: '1', login: 'bea' };
    const { json: stay } = await ask('staff a', '/stays', 'POST', input);
    const text = '{ stays { id patient { id } } patients { stays { id } } }';
    const ofBea = await query('bea a', text);
    expect(ofBea.data).toEqual({
      stays: [{ id: `${stay.id}`, patient: null }],
      patients: [{ stays: [] }],
    });
    const ofAnn = await query('ann a', text);
    expect(ofAnn.data).toEqual({ stays: [], patients: [{ stays: [] }] });
    await ask('staff a', `/stays/${stay.id}`, 'DELETE');
  });

  test('no creation or change leaves the rows of its caller', async () => {
    const refusal = (member: string) => ({
      code: 'BAD_USER_INPUT',
      status: 400,
      message: `${member} must be that of the caller.`,
    });
    const json = { name: 'x', kind: 'cat', login: 'bea' };
    const created = await ask('ann a', '/patients', 'POST', json);
    expect(created.json).toEqual(refusal('login'));
    const several = await ask('ann a', '/patients/batch', 'POST', {
      inputs: [json, { ...json, name: 'own', login: 'ann' }],
    });
    expect(several.json).toMatchObject([
      { error: refusal('login') },
      { item: { login: 'ann', clinic: 'a' } },
    ]);
    await ask('ann a', `/patients/${several.json[1].item.id}`, 'DELETE');
    const { id, version } = rows['ann a'];
    for (const login of ['bea', null]) {
      const change = { version, login };
      const path = `/patients/${id}`;
      const changed = await ask('ann a', path, 'PATCH', change);
      expect(changed.json).toEqual(refusal('login'));
    }
    const { errors } = await query(
      'ann a',
      `mutation { changePatient(id: "${id}", change: { version: ${version}, login: "bea" }) { id } }`,
    );
    expect(errors?.[0]?.message).toBe(refusal('login').message);
  });

  test('a change that takes a row from the audience of its caller is refused, whatever another one would permit', async () => {
    const { id, version } = rows['bea a'];
    const path = `/patients/${id}`;
    const refusal = { code: 'BAD_USER_INPUT', status: 400 };
    const message = 'login must be that of the caller.';
    const handedOver = { login: 'ann', sitter: 'bea' };
    for (const change of [{ login: 'ann' }, { login: null }, handedOver]) {
      const json = { version, ...change };
      const changed = await ask('bea sits a', path, 'PATCH', json);
      expect(changed.json).toEqual({ ...refusal, message });
      // It is not of this audience.
      const sitter = await ask('sitter a', path, 'PATCH', json);
      expect(sitter.status).toBe('sitter' in change ? 400 : 404);
    }
    const text = `mutation { changePatient(id: "${id}", change: { version: ${version}, login: "ann" }) { id } }`;
    const { errors } = await query('bea sits a', text);
    expect(errors).toMatchObject([{ message, extensions: refusal }]);
    const none = await ask('bea sits a', '/patients/99999', 'PATCH', {
      version,
      login: 'ann',
    });
    expect(none.status).toBe(404);
    // It stays by the other one.
    const both = { version, sitter: 'bea' };
    const { json } = await ask('bea a', path, 'PATCH', both);
    const given = { version: json.version, login: 'ann' };
    const kept = await ask('bea sits a', path, 'PATCH', given);
    expect(kept.json).toMatchObject({ login: 'ann', sitter: 'bea' });
    const back = { version: kept.json.version, login: 'bea', sitter: null };
    rows['bea a'] = (await ask('staff a', path, 'PATCH', back)).json;
    expect(rows['bea a'].login).toBe('bea');
  });

  test('live lists have the own rows, from any place, and their position tells of no other', async () => {
    const follow = (caller: string, path: string, headers = {}) =>
      openStream(store, {
        method: 'GET',
        path: `/v1/patients${path}`,
        key: callers[caller] ?? '',
        headers: { accept: 'text/event-stream', ...headers },
      });
    for (const caller of each()) {
      const own = (seen[caller] ?? []).map((name) => rows[name].id);
      const streams = [
        await follow(caller, '?after=0'),
        await follow(caller, '', { 'last-event-id': '0' }),
      ];
      for (const stream of streams) {
        const events = await stream.until(own.length);
        expect(events.map(({ id }) => Number(id))).toEqual(own);
        stream.close();
      }
      const fresh = await follow(caller, '');
      const id = `${own.at(-1) ?? '-9223372036854775808'}`;
      await fresh.until(0);
      while (fresh.lastEventId === undefined)
        await new Promise((next) => setTimeout(next, 10));
      expect(fresh.lastEventId).toBe(id);
      fresh.close();
    }
  });

  test('an idempotency key repeats for its caller only', async () => {
    const json = { name: 'once', kind: 'cat' };
    const headers = { 'idempotency-key': 'the-same' };
    const first = await ask('ann a', '/patients', 'POST', json, headers);
    const again = await ask('ann a', '/patients', 'POST', json, headers);
    expect(again.json).toEqual(first.json);
    const other = await ask('ann b', '/patients', 'POST', json, headers);
    expect(other.json).toMatchObject({ clinic: 'b' });
    await ask('ann a', `/patients/${first.json.id}`, 'DELETE');
    await ask('ann b', `/patients/${other.json.id}`, 'DELETE');
  });

  test('a caller is told the scope of its own module', async () => {
    callers.views = tokenOf('a', 'ann', 'views');
    const message = 'This needs a token with the scope "portal".';
    const json = { name: 'x', kind: 'cat' };
    const { headers, ...refused } = await ask(
      'views',
      '/patients',
      'POST',
      json,
    );
    expect(refused.json).toEqual({ code: 'FORBIDDEN', status: 403, message });
    expect(headers['www-authenticate']).toBe(
      'Bearer error="insufficient_scope", scope="portal"',
    );
    const { errors } = await query(
      'views',
      'mutation { createPatient(input: { name: "x", kind: "cat" }) { id } }',
    );
    expect(errors).toMatchObject([{ message }]);
    const none = await ask('pets', '/patients', 'POST', json);
    expect(none.json.message).toBe(
      'This needs a token with the scope "clinic".',
    );
  });

  test('callers without an audience get 403, and tools of theirs only', async () => {
    const refused = await ask('pets', '/patients');
    expect(refused.status).toBe(403);
    const { errors } = await query('pets', '{ patients { id } }');
    expect(errors?.[0]?.extensions.code).toBe('FORBIDDEN');
    // A customer has no operation of the clinic.
    expect((await ask('ann a', '/patient-kinds')).status).toBe(403);
    const { json } = await ask('homeless', '/patients');
    expect(json.message).toContain('This needs a token with a tenant');
    const target = { origin: store.origin, key: callers['ann a'] ?? '' };
    const listed = await rpc(target, 'tools/list');
    expect(listed.json).toHaveProperty('result');
    const { tools } = listed.json.result;
    const named = tools.map(({ name }: { name: string }) => name);
    expect(named).toContain('list_patients');
    expect(named).not.toContain('patient_kinds');
    expect(named).not.toContain('list_pets');
  });

  test('an audience without the tenant adds no row of a collection of tenants', () => {
    const owned = new Ownership(
      {
        audiences: [
          { scope: 'clinic', rows: { clinic: 'tenant' } },
          { scope: 'portal', rows: { login: 'subject' } },
        ],
      },
      undefined,
    );
    const call = new Call();
    call.caller = { id: 7, name: 'ann', subject: 'ann', scopes: ['write'] };
    const add = () => owned.claim({ name: 'Rex' }, call);
    expect(add).toThrow('This needs a token with a tenant');
    call.caller = { ...call.caller, tenant: 'a' };
    expect(add()).toEqual({ name: 'Rex', clinic: 'a' });
  });

  test('an import names the clinic, and may name the customer', async () => {
    const collection = openModules(store.modules, store.database, {})
      .flatMap(({ collections = [] }) => collections)
      .find(({ name }) => name === 'patients') as Collection;
    const input = join(await newFolder(), 'patients.ndjson');
    const lines = [
      { name: 'no clinic', kind: 'cat' },
      { name: 'of c', kind: 'cat', clinic: 'c', login: 'cis' },
      { name: 'of none', kind: 'cat', clinic: 'c' },
    ];
    writeFileSync(input, lines.map((one) => JSON.stringify(one)).join('\n'));
    const refused: string[] = [];
    const { result } = await importFile(
      {
        collection,
        maxLength: 10_000,
        signal: new AbortController().signal,
        progress: () => undefined,
        refused: (line, reason) => refused.push(`${line}: ${reason}`),
      },
      { input },
    );
    process.exitCode = undefined;
    expect(result).toEqual({ added: 2, same: 0, refused: 1 });
    expect(refused).toEqual(['1: clinic must be the name of a tenant.']);
    callers['cis c'] = tokenOf('c', 'cis', 'portal');
    const { json } = await ask('cis c', '/patients');
    expect(json).toMatchObject([{ name: 'of c', login: 'cis', clinic: 'c' }]);
    await sql(store.database, `delete from patient where clinic = 'c'`);
  });

  test('the start names the indexes of each audience, and none for rows that no caller sees as a whole', () => {
    const audiences = [
      { scope: 'portal', rows: { login: 'subject', name: 'subject' } },
    ] as const;
    const open = (filters: 'kind'[]) => () =>
      new Records(store.database, PatientEntity, {
        audiences,
        filters,
        orders: ['version'],
      } as never);
    expect(open(['kind'])).toThrow(
      "the entity lacks { properties: ['login', 'name', 'id'] }, { properties: ['login', 'name', 'kind', 'id'] }.",
    );
    const both = () =>
      new Records(store.database, PatientEntity, {
        ...patient.lists,
        owner: 'clinic',
      } as never);
    expect(both).toThrow('An owner is an audience: declare one of the two.');
    const wrong = () =>
      new Records(store.database, PatientEntity, {
        audiences: [{ scope: 'portal:read', rows: {} }],
      });
    expect(wrong).toThrow('portal:read is no scope of an audience');
    const foreign = () =>
      new Records(store.database, PatientEntity, {
        audiences: [
          { scope: 'clinics', rows: { clinic: 'tenant' } as never },
          { scope: 'support', rows: {} },
        ],
      });
    expect(foreign).toThrow(
      'The audience support sees all tenants: its scope must be one of all, such as support:all.',
    );
  });
});
