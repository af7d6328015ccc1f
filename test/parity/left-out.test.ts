// runs: postgres

import { features } from '../../src/features.ts';
import { without } from '../support/features.ts';
import { describe } from '../support/jest.ts';
import { onPostgres } from '../support/process.ts';
import { authenticationFirst } from './authentication-first.ts';
import { newAnimals } from './new-animals.ts';

const title =
  'a feature is left out (skipped on the embedded store, which is a feature)';
(onPostgres ? describe : describe.skip)(title, () => {
  describe.each(features)('without $name', ({ name }) => {
    const options = { parts: without([name]) };
    newAnimals(options);
    authenticationFirst(options);
  });
});
