import { diariesModule } from '../../modules/diaries/diaries.module.ts';
import { passports } from '../../modules/passports/passports.module.ts';
import { practiceModule } from '../../modules/practice/practice.module.ts';
import { describe, expect, test } from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { citusLayout } from '../../support/servers/citus-database.ts';
import { storeForAll } from '../../support/store.ts';
import { callTool, post, rpc } from './mcp.ts';

/** Each tool of modules with values of every kind, beside REST. */

// Citus allows a foreign key between distributed tables only when both are
// distributed by it.
const describeHere = citusLayout ? describe.skip : describe;

const chip = '0190163d-8694-739b-aea5-966c26f8ad91';
const other = chip.replace(/..$/, '00');
const big = 9007199254740993n;
const rounded = 9007199254740994;

/** Numbers as text, because an int64 is text in a tool. */
const alike = (value: unknown) =>
  JSON.parse(
    JSON.stringify(value, (_, one) =>
      ['number', 'bigint'].includes(typeof one) ? `${one}` : one,
    ),
  );

describeHere('tools', () => {
  const store = storeForAll({ MCP: 'true' }, undefined, {
    more: [diariesModule, passports, practiceModule],
  });
  const call = (name: string, args: object) => callTool(store, name, args);
  const called = new Set<string>();

  /** Calls a tool and the operation of REST. */
  const beside = async (
    name: string,
    args: object,
    path: string,
    method = 'GET',
    json?: object,
  ) => {
    called.add(name);
    const { structuredContent, content } = await call(name, args);
    const text = content[0].text;
    const answer = await rest(store, `/v1${path}`, { method, json });
    const { json: item } = answer;
    const expected = Array.isArray(item) ? { items: item } : item;
    if (structuredContent) expect(JSON.parse(text)).toEqual(structuredContent);
    return [alike(structuredContent ?? text), alike(expected ?? answer.status)];
  };
  const create = async (name: string, args: object) => {
    called.add(name);
    const { structuredContent, content } = await call(name, args);
    expect(structuredContent ?? content).toMatchObject({});
    return structuredContent;
  };

  test('answer what REST answers, for every kind of argument', async () => {
    const pet = await create('create_pet', {
      name: 'Rex',
      categoryId: `${big}`,
    });
    const owner = await create('create_owner', { name: 'Ada', email: 'a' });
    const at = '2030-12-05T09:30:00.000Z';
    const visit = await create('create_visit', {
      ...{ petId: pet.id, ownerId: owner.id, at, reason: 'limps' },
    });
    const input = { visitId: visit.id, name: 'x', price: '1.5' };
    const several = await create('create_treatments', {
      inputs: [input, { ...input, visitId: `${big}` }, { ...input, price: 1 }],
    });
    expect(several.items).toEqual([
      { item: { ...input, id: expect.any(String), price: '1.50', version: 1 } },
      { error: expect.objectContaining({ code: 'BAD_USER_INPUT' }) },
      { error: expect.objectContaining({ code: 'BAD_USER_INPUT' }) },
    ]);
    for (const mood of ['x', 'y,z', 'NULL'])
      await create('create_diary', { title: mood, mood });
    const passport = await create('create_passport', {
      ...{ chip, issuedOn: '2026-11-28', marks: ['white', 'a,b'] },
      bornOn: '2024-02-29',
    });
    await create('create_passport', {
      ...{ chip: other, issuedOn: '2026-11-29', marks: [] },
    });

    const treatments = `visitId=${visit.id}`;
    const all: Array<[name: string, args: object, path: string]> = [
      ['list_diaries', { mood_in: ['x'] }, '/diaries?mood_in=x'],
      ['list_diaries', { mood_in: 'x' }, '/diaries?mood_in=x'],
      ['list_diaries', { mood: 'y,z' }, '/diaries?mood=y,z'],
      ['list_diaries', { mood: null }, '/diaries'],
      [
        'list_diaries',
        { mood_in: ['y,z', 'NULL'] },
        '/diaries?mood_in=y,z&mood_in=NULL',
      ],
      ['list_diaries', { pages_gte: 1 }, '/diaries?pages_gte=1'],
      ['list_diaries', { pages_gte: '2' }, '/diaries?pages_gte=2'],
      ['list_passports', { chip_in: [chip] }, `/passports?chip_in=${chip}`],
      [
        'list_passports',
        { chip_in: [chip, other] },
        `/passports?chip_in=${chip}&chip_in=${other}`,
      ],
      [
        'list_passports',
        { bornOn_is_null: true },
        '/passports?bornOn_is_null=true',
      ],
      [
        'get_passport',
        { passportId: passport.id },
        `/passports/${passport.id}`,
      ],
      ['list_owners', { name_prefix: 'a' }, '/owners?name_prefix=a'],
      ['list_treatments', { visitId: visit.id }, `/treatments?${treatments}`],
      ['list_visits', { petId: pet.id, sort: 'at' }, '/visits?petId=1&sort=at'],
      ['list_pets', { status: 'available' }, '/pets?status=available'],
    ];
    for (const [name, args, path] of all) {
      const [tool, answer] = await beside(name, args, path);
      expect([name, args, tool]).toEqual([name, args, answer]);
    }
  });

  test.each<[string, object]>([
    ['list_diaries', { mood_in: [] }],
    ['list_diaries', { mood_in: [null] }],
    ['list_diaries', { mood_in: [['x']] }],
    ['list_diaries', { mood_in: [{ a: 1 }] }],
    ['list_diaries', { mood: { a: 1 } }],
    ['list_diaries', { mood: ['x', 'y'] }],
    ['get_diary', { diaryId: {} }],
    ['create_treatments', { inputs: [{ visitId: rounded }] }],
    ['create_visit', { petId: rounded }],
    ['list_treatments', { visitId: rounded }],
  ])(
    '%s refuses %j instead of answering something else',
    async (name, args) => {
      expect(await call(name, args)).toMatchObject({ isError: true });
    },
  );

  test('a rounded int64 is named with its place', async () => {
    const { content } = await call('create_treatments', {
      inputs: [{}, { visitId: rounded }],
    });
    expect(content[0].text).toMatch(/inputs\[1\]\.visitId must be text/);
  });

  test('any JSON keeps its digits, in and out', async () => {
    const digits = '{"n":[9007199254740993,12345678901234567890,0.25]}';
    const passport = `{"chip":"${chip.replace(/..$/, '77')}","bornOn":"2024-02-29","issuedOn":"2026-11-28","marks":[],"data":${digits}}`;
    const params = `{"name":"create_passport","arguments":${passport}}`;
    const body = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":${params}}`;
    const { text, json } = await post(store, body);
    const { id } = json.result.structuredContent;
    expect(text).toContain(`"data":${digits}`);
    expect(json.result.content[0].text).toContain(`"data":${digits}`);
    const found = await rpc(store, 'tools/call', {
      ...{ name: 'get_passport', arguments: { passportId: id } },
    });
    expect(found.text).toContain(`"data":${digits}`);
  });
});
