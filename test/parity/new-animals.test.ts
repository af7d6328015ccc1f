// runs: embedded, postgres, plugins

import { newAnimals } from './new-animals.ts';

newAnimals();
