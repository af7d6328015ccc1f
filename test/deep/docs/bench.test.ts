import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect, test } from '../../support/jest.ts';

const { scripts } = JSON.parse(readFileSync('package.json', 'utf8'));
const env = { PATH: process.env.PATH };
const node = (args: string[]) =>
  promisify(execFile)(process.execPath, args, { env }).catch((error) => error);

test.each(['bench', 'bench:growth', 'bench:citus'])(
  '%s starts, and names the variable that it lacks',
  async (name) => {
    const [, command = ''] = /&& node ([^&]+)$/.exec(scripts[name]) ?? [];
    const { code, stderr } = await node(command.split(' '));
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^(?:Set )?BENCH_(?:CITUS|DATABASE_URL) [^\n]+\n$/),
    ]);
  },
);

test('the growth benchmark explains the statements of the service', async () => {
  const script = `
    import { findStatement, listStatement } from './bench/plans.ts';
    const list = await listStatement([{ limit: 2, status: 'sold', after: 7 }]);
    console.log(JSON.stringify([list, await findStatement([1, 2])]));
    process.exit();`;
  const options = [
    '--experimental-transform-types',
    '--disable-warning=ExperimentalWarning',
    '--input-type=module',
  ];
  const { stdout, stderr } = await node([...options, '--eval', script]);
  expect(stderr).toBe('');
  expect(JSON.parse(stdout)).toEqual([
    { text: expect.stringContaining('limit'), values: [3, 'sold', '7'] },
    {
      text: expect.stringContaining('from "pet" where id = any'),
      values: [['1', '2']],
    },
  ]);
});
