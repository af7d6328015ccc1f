import { processes } from '../../config/variables.ts';
import { feature } from '../../feature.ts';

/** Several processes that serve, and their parent. */
export const workers = feature({
  name: 'workers',
  variables: {
    WORKERS: processes(
      1,
      'Processes that serve; `auto` for one per core (operate.md).',
    ),
  },
  async commands(program) {
    const { startFlag } = await import('../../commands/program.ts');
    startFlag(program, '--workers <number>', 'WORKERS');
  },
  async serving(service, { WORKERS: count }) {
    // Workers have the variables of their parent.
    if (count === 1) return undefined;
    const { servingOf } = await import('./serving.ts');
    return servingOf(service, count);
  },
});
