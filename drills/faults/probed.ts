import { rmSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { newFolder } from '../../test/support/folder.ts';
import type { Env } from '../../test/support/process.ts';
import type { Parts } from '../drill.ts';

/** What can be asked of a process that has the probe in it, and done to it. */
export interface Probe {
  /** The environment of the process. */
  env: Env;
  /** What is kept, in bytes: the heap after a collection. */
  heap(): Promise<number>;
  /** Sets its clock, in milliseconds from the right time. */
  setClock(milliseconds: number): Promise<void>;
}

export async function probe(parts: Parts): Promise<Probe> {
  const folder = parts.add(await newFolder(), (path) => rmSync(path, { recursive: true, force: true }));
  const socketPath = join(folder, 'probe');
  const file = fileURLToPath(new URL('probe.ts', import.meta.url));
  const ask = (method: string, path: string) =>
    new Promise<string>((done, fail) => {
      request({ socketPath, method, path }, (answer) => text(answer).then(done, fail))
        .on('error', fail)
        .end();
    });
  return {
    env: { NODE_OPTIONS: `--import=${file}`, DRILL_PROBE: socketPath },
    heap: async () => Number(await ask('GET', '/')),
    setClock: async (milliseconds) => void (await ask('POST', `/${milliseconds}`)),
  };
}
