import { whole } from '../../config/variables.ts';
import { feature } from '../../feature.ts';

/** Keeps and serves what has changed in collections that leave a trace. */
export const changes = feature({
  name: 'changes',
  variables: {
    CHANGES_DAYS: whole(1, 36_500)(
      90,
      'Days for which changes are kept (decisions.md).',
    ),
  },
  async module(modules) {
    if (!modules.some(({ keepsChanges }) => keepsChanges)) return undefined;
    const { changesModule } = await import('./changes.module.ts');
    return changesModule;
  },
});
