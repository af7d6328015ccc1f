import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** The size of the heap in bytes after a garbage collection. */
export function heapUsed(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}
