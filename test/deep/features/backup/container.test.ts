import { afterEach, expect, test } from '../../../support/jest.ts';
import { killAll } from '../../../support/process.ts';
import { canContain, createContainer } from '../../support/container.ts';

afterEach(killAll);

(canContain ? test : test.skip)(
  'a store is backed up and restored in a container (skipped without root)',
  async () => {
    const container = await createContainer();
    const cli = (line: string, env = {}) =>
      container.run(['bin/animal-store.js', ...line.split(' '), '--json'], env)
        .ended;
    const isDone = {
      code: 0,
      stdout: expect.stringMatching(/^\{.*\}\n$/),
      stderr: '',
    };
    expect(await cli('keys issue --name shop')).toMatchObject(isDone);
    expect(await cli('backup /data/store.ndjson')).toMatchObject(isDone);
    const restored = await cli('restore /data/store.ndjson', {
      DATA_DIR: '/data/restored',
    });
    expect(restored).toMatchObject(isDone);
    expect(JSON.parse(restored.stdout).tables).toContainEqual(
      expect.objectContaining({ table: 'api_key', rows: 1 }),
    );
    container.remove();
  },
);
