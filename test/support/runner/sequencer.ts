import { relative } from 'node:path';
import * as sequencing from '@jest/test-sequencer';
import { shuffled } from './shuffled.ts';

// The package's types are those of its CommonJS.
const TestSequencer =
  sequencing.default as unknown as typeof sequencing.default.default;
type Jest = InstanceType<typeof TestSequencer>;
type Options = ConstructorParameters<typeof TestSequencer>[0];

/** Jest's order of files, and with `--randomize` one of the seed. */
export default class Sequencer extends TestSequencer {
  readonly #config: Options['globalConfig'];

  constructor(options: Options) {
    super(options);
    this.#config = options.globalConfig;
  }

  override sort(
    ...[tests]: Parameters<Jest['sort']>
  ): ReturnType<Jest['sort']> {
    const { randomize, seed, rootDir } = this.#config;
    if (!randomize) return super.sort(tests);
    return shuffled([...tests], `${seed}`, ({ path }) =>
      relative(rootDir, path),
    );
  }
}
