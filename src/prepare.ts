import { prepareStore } from './prepared-store.ts';

// The last step of the build.
await prepareStore();
