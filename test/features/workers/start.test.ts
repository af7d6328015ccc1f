import { databaseForEach } from '../../support/fixtures.ts';
import { send } from '../../support/http.ts';
import { afterEach, expect, test } from '../../support/jest.ts';
import {
  eventually,
  freePort,
  bootstrapKey as key,
  killAll,
  run,
} from '../../support/process.ts';
import { rest } from '../../support/rest.ts';

afterEach(killAll);

const database = databaseForEach();

test('`start --workers` serves with workers, whatever WORKERS says', async () => {
  const port = await freePort();
  const env = { ...database.env, WORKERS: '1', BOOTSTRAP_API_KEY: key };
  const service = run(
    'cli',
    ['start', '--port', `${port}`, '--workers', '2'],
    env,
  );
  const origin = `http://127.0.0.1:${port}`;
  await eventually(
    async () => (await send(origin, { path: '/readyz' })).status === 200,
  );
  expect((await rest({ origin, key }, '/v1/pets')).json).toEqual([]);
  service.child.kill('SIGTERM');
  expect(await service.ended).toMatchObject({ code: 0, stderr: '' });
  expect(service.output.stdout.match(/"msg":"worker started"/g)).toHaveLength(
    2,
  );
});
