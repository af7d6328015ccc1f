import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from '../../../support/jest.ts';
import { rest } from '../../../support/rest.ts';
import { storeForAll } from '../../../support/store.ts';

/** The program of examples/mcp. */

const store = storeForAll({ MCP: 'true' });

const run = (key: string) =>
  promisify(execFile)('python3', ['tools.py'], {
    cwd: 'examples/mcp',
    env: { PATH: process.env.PATH, STORE_URL: store.origin, KEY: key },
  });

test('the example adds an animal once, and lists all, with exact digits', async () => {
  for (const name of ['a', 'b'])
    await rest(store, '/v1/pets', {
      method: 'POST',
      json: { name, categoryId: 1 },
    });
  const { stdout, stderr } = await run(store.key);
  const pets = (await rest(store, '/v1/pets')).json;
  const [a, b, rex] = pets.map(({ id }: { id: number }) => id);
  expect({ stdout, stderr }).toEqual({
    stdout: `list_pets - List animals
create_pet - Add an animal
added once: True 9007199254740993
${a} a 1 available
${b} b 1 available
${rex} Rex 9007199254740993 available
`,
    stderr: '',
  });
});

test('the example reports why a key is refused', async () => {
  const stderr = expect.stringMatching(/^UNAUTHENTICATED: .+\n$/);
  await expect(run('wrong')).rejects.toMatchObject({
    code: 1,
    stdout: '',
    stderr,
  });
});
