import { Redactor } from '@animal-store/log/redactor';
import { secretsInLines } from '#engine/access/keys/secret.js';
import { Log } from '#engine/runtime/log/log.js';
import { makeChildrenLate } from '#engine/runtime/log/request-log.js';
import { expect, test } from '../support/jest.ts';

/** What a module, a plugin or an error writes into the log of the service. */

const key = `ask_${'a1B2'.repeat(12)}c`;
const token = `eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhZGEifQ.${'s'.repeat(86)}`;
const configured = 'hunter2-hunter2-hunter2-hunter2-hunter2';
const opaque = 'b64-of/another+service==';

test.each([
  ['headers', (secret: string) => ({ authorization: `Bearer ${secret}` })],
  ['raw headers', (secret: string) => ['Authorization', `bearer  ${secret}`]],
  ['nested members', (secret: string) => ({ a: [{ b: `Bearer ${secret}` }] })],
  ['an error', (secret: string) => new Error(`Bearer ${secret} is wrong`)],
  [
    'the cause of an error',
    (secret: string) =>
      new Error('x', { cause: new Error(`by "Bearer ${secret}"`) }),
  ],
])(
  'no secret is logged in %s, by a child logger, or in a message',
  (_what, shape) => {
    const lines: string[] = [];
    const log = new Log(
      { level: 'debug', sample: 1 },
      { write: (line) => void lines.push(line) },
    );
    log.redactor = new Redactor(secretsInLines, configured);
    for (const secret of [key, token, configured, opaque]) {
      const err = shape(secret);
      log.logger.warn({ err, what: err }, 'a');
      log.logger.child({ bindings: err }).error(err, `with Bearer ${secret}`);
    }
    expect(lines).toHaveLength(8);
    for (const line of lines) {
      for (const secret of [key, token, configured, opaque])
        expect(line).not.toContain(secret.slice(0, 12));
      expect(JSON.parse(line)).toMatchObject({ level: expect.any(Number) });
    }
  },
);

test('children of the log of a request have its members', () => {
  const lines: object[] = [];
  const write = (line: string) => void lines.push(JSON.parse(line));
  const { logger: log } = new Log({ level: 'info', sample: 1 }, { write });
  makeChildrenLate(log as never);
  const request = log.child({ reqId: '7' });
  request.child({ op: 'c' }).child({ part: 1 }).info('x');
  request.level = 'silent';
  request.info('y');
  log.info('z');
  expect(lines).toMatchObject([
    { reqId: '7', op: 'c', part: 1, msg: 'x' },
    { msg: 'z' },
  ]);
});

test('names and messages stay as they are', () => {
  const lines: string[] = [];
  const write = (line: string) => void lines.push(line);
  const log = new Log({ level: 'info', sample: 1 }, { write });
  log.redactor = new Redactor(secretsInLines, undefined);
  const said = { column: 'task_id', challenge: 'Bearer error="x"' };
  log.logger.info(said, 'ask_ begins a key');
  expect(JSON.parse(`${lines}`)).toMatchObject({
    ...said,
    msg: 'ask_ begins a key',
  });
});
