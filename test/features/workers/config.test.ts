import { loadConfig } from '#engine/config/config.js';
import { workers } from '#engine/features/workers/index.js';
import { expect, test } from '../../support/jest.ts';

test('WORKERS is an integer from 1 to 256, or auto', () => {
  const load = (WORKERS: string) => loadConfig({ WORKERS }, [workers]);
  for (const good of ['1', '256', 'auto'])
    expect(`${load(good).values.WORKERS}`).toBe(good);
  for (const bad of ['0', '257', '1.5', 'all'])
    expect(() => load(bad)).toThrow('WORKERS');
});
