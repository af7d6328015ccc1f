// runs: embedded, postgres

import { authenticationFirst } from './authentication-first.ts';

authenticationFirst();
