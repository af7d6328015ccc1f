import { Records } from '#engine/records/records.js';
import { clinicOn } from '../../modules/clinic/clinic.module.ts';
import {
  EntityRecords,
  type Repositories,
} from '../../modules/repositories/entity-records.ts';
import { graphqlText } from '../../support/graphql.ts';
import { beforeAll, describe, expect, test } from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { citusLayout } from '../../support/servers/citus-database.ts';
import { storeForAll } from '../../support/store.ts';
import { providerForAll } from './provider.ts';

/**
 * Random requests of callers with overlapping audiences, on both APIs, beside a
 * model of what each may see.
 */

const describeHere = citusLayout ? describe.skip : describe;

interface Row {
  id: number;
  clinic: string;
  name: string;
  kind: string;
  weight: number;
  login: string | null;
  sitter: string | null;
  version: number;
}

interface Caller {
  sub: string;
  org: string;
  scope: string;
}

const callersOf = (org: string): Caller[] => [
  { sub: 'staff', org, scope: 'clinic' },
  { sub: 'ann', org, scope: 'portal' },
  { sub: 'bea', org, scope: 'portal sitters' },
  { sub: 'cid', org, scope: 'sitters' },
  { sub: 'ann', org, scope: 'portal sitters looks' },
];
const callers: Caller[] = [
  ...callersOf('a'),
  ...callersOf('b'),
  { sub: 'ann', org: 'a', scope: 'clinic portal sitters' },
  { sub: 'sue', org: 'a', scope: 'clinic support' },
];

/** What a caller sees, written anew. */
function sees({ sub, org, scope }: Caller, row: Row, action = 'read') {
  const has = (word: string) => scope.split(' ').includes(word);
  if (has('support')) return true;
  if (row.clinic !== org) return false;
  if (has('clinic')) return true;
  if (has('looks') && action === 'read') return true;
  if (has('portal') && row.login === sub) return true;
  return has('sitters') && row.sitter === sub;
}

/** The same numbers at each run. */
function randomFrom(seed: number) {
  let state = seed;
  return (below: number) => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return Math.floor((state / 2147483648) * below);
  };
}

const collections: Array<[string, Repositories, number]> = [
  ['Records', Records, 700],
  ['MikroORM', EntityRecords, 150],
];
describeHere.each(collections)('audiences on %s', (_, Collection, count) => {
  const provider = providerForAll();
  const env: Record<string, string> = {};
  beforeAll(() =>
    Object.assign(env, provider.env, {
      JWT_TENANT: 'org',
      JWT_SCOPES:
        'clinic=clinic:write,portal=portal:write,sitters=sitters:write,support=clinic:all,looks=clinic:read',
    }),
  );
  const store = storeForAll(env, undefined, { more: clinicOn(Collection) });
  const random = randomFrom(7);
  const pick = <T>(all: readonly T[]) => all[random(all.length)] as T;
  const rows = new Map<number, Row>();
  let names = 0;

  const ask = async (
    { sub, org, scope }: Caller,
    path: string,
    method = 'GET',
    json?: object,
    headers = {},
  ) =>
    rest(store, `/v1${path}`, {
      method,
      json,
      headers,
      key: provider.token({ sub, org, scope }),
    });
  const query = async ({ sub, org, scope }: Caller, text: string) =>
    graphqlText(store, { query: text }, provider.token({ sub, org, scope }));
  const seenBy = (caller: Caller) =>
    [...rows.values()]
      .filter((row) => sees(caller, row))
      .sort((one, other) => one.id - other.id);

  const filters = [
    { url: '', graphql: '', has: () => true, by: 'id' },
    {
      url: 'kind=cat',
      graphql: 'kind: "cat"',
      has: ({ kind }: Row) => kind === 'cat',
      by: 'id',
    },
    {
      url: 'login=ann',
      graphql: 'login: "ann"',
      has: ({ login }: Row) => login === 'ann',
      by: 'id',
    },
    {
      url: 'kind_in=cat&kind_in=dog',
      graphql: 'kind_in: ["cat", "dog"]',
      has: ({ kind }: Row) => kind !== 'cow',
      by: 'id',
    },
    {
      url: 'weight_gte=2&weight_lt=8',
      graphql: 'weight_gte: 2, weight_lt: 8',
      has: ({ weight }: Row) => weight >= 2 && weight < 8,
      by: 'weight',
    },
    {
      url: 'sort=weight_desc&login=ann',
      graphql: 'sort: weight_desc, login: "ann"',
      has: ({ login }: Row) => login === 'ann',
      by: 'weight_desc',
    },
    {
      url: 'sort=weight',
      graphql: 'sort: weight',
      has: () => true,
      by: 'weight',
    },
    {
      url: 'sort=id_desc',
      graphql: 'sort: id_desc',
      has: () => true,
      by: 'id_desc',
    },
  ];

  function ordered(all: Row[], by: string) {
    const [member = ''] = by.split('_');
    const keys = (row: Row) =>
      member === 'weight' ? [row.weight, row.id] : [row.id];
    const sorted = all.toSorted((one, other) => {
      const [a, b] = [keys(one), keys(other)];
      return (a[0] ?? 0) - (b[0] ?? 0) || one.id - other.id;
    });
    return by.endsWith('_desc') ? sorted.reverse() : sorted;
  }

  async function listed(caller: Caller) {
    const { url, graphql, has, by } = pick(filters);
    const expected = ordered(seenBy(caller).filter(has), by);
    const limit = 1 + random(5);
    if (random(2) === 0) {
      // A walk, page by page, with the total.
      const found: Row[] = [];
      let next: string | undefined = `/patients?${url}&limit=${limit}`;
      while (next !== undefined && found.length <= expected.length) {
        const { json, headers } = await ask(caller, next, 'GET', undefined, {
          prefer: 'count=exact',
        });
        expect(headers['x-total-count']).toBe(`${expected.length}`);
        found.push(...json);
        const [, link] =
          /<[^>]*\/v1([^>]*)>; rel="next"/.exec(`${headers.link}`) ?? [];
        next = link;
      }
      expect(found).toEqual(expected);
      return;
    }
    const args = [graphql, `last: ${limit}`].filter(Boolean).join(', ');
    const { data } = await query(
      caller,
      `{ patientsConnection(${args}) { totalCount nodes: edges { node { id } } pageInfo { hasPreviousPage hasNextPage } } }`,
    );
    const { nodes, totalCount, pageInfo } = data.patientsConnection;
    expect(nodes.map((edge: any) => Number(edge.node.id))).toEqual(
      expected.slice(-limit).map(({ id }) => id),
    );
    expect(totalCount).toBe(expected.length);
    expect(pageInfo).toEqual({
      hasPreviousPage: expected.length > limit,
      hasNextPage: false,
    });
  }

  async function created(caller: Caller) {
    names += 1;
    const people = [undefined, undefined, 'ann', 'bea', 'cid', null];
    const json = {
      name: `n${names}`,
      kind: pick(['cat', 'dog', 'cow']),
      weight: random(10),
      login: pick(people),
      sitter: pick(people),
    };
    const { status, json: added } = await ask(
      caller,
      '/patients',
      'POST',
      json,
    );
    // The first audience that it fits sets what is absent.
    const has = (word: string) => caller.scope.split(' ').includes(word);
    const fits = (given?: string | null) =>
      given == null || given === caller.sub;
    const own = has('clinic')
      ? {}
      : has('portal') && fits(json.login)
        ? { login: caller.sub }
        : has('sitters') && fits(json.sitter)
          ? { sitter: caller.sub }
          : undefined;
    if (!own) {
      expect([status, added.code]).toEqual([400, 'BAD_USER_INPUT']);
      return;
    }
    const row = {
      ...{ ...json, login: json.login ?? null, sitter: json.sitter ?? null },
      ...own,
      id: added.id,
      clinic: caller.org,
      version: 1,
    };
    expect(added).toEqual(row);
    rows.set(added.id, row);
  }

  async function found(caller: Caller) {
    const row = pick([...rows.values()]);
    const seen = sees(caller, row) ? row : null;
    const { status, json } = await ask(caller, `/patients/${row.id}`);
    expect(status).toBe(seen ? 200 : 404);
    if (seen) expect(json).toEqual(seen);
    const { data } = await query(
      caller,
      `{ patient(id: "${row.id}") { id clinic } }`,
    );
    expect(data.patient).toEqual(
      seen && { id: `${row.id}`, clinic: row.clinic },
    );
  }

  async function changed(caller: Caller) {
    const row = pick([...rows.values()]);
    const weight = (row.weight + 1) % 10;
    const others: Array<Partial<Row>> = [
      {},
      { login: pick(['ann', 'bea']) },
      { sitter: pick(['cid', 'bea']), kind: 'cow' },
    ];
    const change = { ...pick(others), weight };
    const { status, json } = await ask(caller, `/patients/${row.id}`, 'PATCH', {
      version: row.version,
      ...change,
    });
    const after = { ...row, ...change, version: row.version + 1 };
    const has = (word: string) => caller.scope.split(' ').includes(word);
    // It stays among the rows of one audience.
    const keeps = [
      has('clinic') || has('support'),
      has('portal') && [row, after].every(({ login }) => login === caller.sub),
      has('sitters') &&
        [row, after].every(({ sitter }) => sitter === caller.sub),
    ].some(Boolean);
    if (keeps && sees(caller, row, 'write')) {
      expect(json).toEqual(after);
      rows.set(row.id, after);
    } else if (sees(caller, row, 'write')) expect(status).toBe(400);
    else expect([400, 404]).toContain(status);
    if (!sees(caller, row) && status === 404)
      expect(json.message).toBe(`There is no patient with the id ${row.id}.`);
  }

  async function removed(caller: Caller) {
    if (random(4) > 0) return;
    const row = pick([...rows.values()]);
    const may = sees(caller, row, 'write');
    const { status } = await ask(caller, `/patients/${row.id}`, 'DELETE');
    expect(status).toBe(may ? 204 : 404);
    if (may) rows.delete(row.id);
  }

  async function reported(caller: Caller) {
    // The operation is the clinic's.
    if (!/clinic|looks/.test(caller.scope)) return;
    const counts: Record<string, number> = {};
    for (const { kind } of seenBy(caller))
      counts[kind] = (counts[kind] ?? 0) + 1;
    const { json } = await ask(caller, '/patient-kinds');
    const found = json.map((one: any) => [one.kind, one.count]);
    expect(Object.fromEntries(found)).toEqual(counts);
  }

  async function related(caller: Caller) {
    const { id, clinic } = pick([...rows.values()]);
    const row = rows.get(id) as Row;
    const input = { patientId: id, room: 'x' };
    const { status } = await ask(caller, '/stays', 'POST', input);
    const isOwn = sees(caller, row) && clinic === caller.org;
    expect(status).toBe(isOwn ? 201 : 400);
    const { data } = await query(
      caller,
      '{ stays(limit: 50) { clinic login sitter patient { id } } patients(limit: 20) { id stays(limit: 10) { clinic login sitter } } }',
    );
    const all = data.patients.flatMap((one: any) => one.stays);
    for (const one of [...data.stays, ...all])
      expect(sees(caller, { ...one })).toBe(true);
    const ids = data.stays.flatMap((one: any) => one.patient?.id ?? []);
    for (const one of ids)
      expect(sees(caller, rows.get(Number(one)) as Row)).toBe(true);
  }

  beforeAll(async () => {
    const staff = callers.filter(({ scope }) => scope.startsWith('clinic'));
    for (let at = 0; at < 40; at += 1) await created(pick(staff));
  });
  // In parts, because a busy machine takes long for all of them.
  test.each([1, 2, 3, 4, 5])(
    'no caller sees or touches a row that its audiences have not, and each all of theirs (part %i)',
    async () => {
      const actions = [
        ...[listed, listed, listed, created, found, changed, changed],
        ...[removed, reported, related],
      ];
      for (let at = 0; at < count / 5; at += 1)
        await pick(actions)(pick(callers));
    },
  );
});
