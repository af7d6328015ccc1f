export { tearDown as default } from './run.ts';
