import { makeBundle } from './api/pages/bundle.ts';
import { prepareStore } from './prepared-store.ts';

// The last step of the build.
await Promise.all([prepareStore(), makeBundle()]);
