import { rmSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { newFolder } from '../../support/folder.ts';
import type { Env } from '../../support/process.ts';
import type { Resources } from '../drill.ts';

/** Controls a process that has loaded probe.ts. */
export interface Probe {
  /** Environment variables that load the probe. */
  env: Env;
  /** The heap size (bytes) after a garbage collection. */
  heap(): Promise<number>;
  /** Sets the process's clock to this offset (ms) from the real time. */
  setClock(milliseconds: number): Promise<void>;
}

export async function probe(resources: Resources): Promise<Probe> {
  const folder = resources.add(await newFolder(), (path) =>
    rmSync(path, { recursive: true, force: true }),
  );
  const socketPath = join(folder, 'probe');
  const file = fileURLToPath(new URL('probe.ts', import.meta.url));
  const send = (method: string, path: string) =>
    new Promise<string>((done, fail) => {
      request({ socketPath, method, path }, (answer) =>
        text(answer).then(done, fail),
      )
        .on('error', fail)
        .end();
    });
  return {
    env: { NODE_OPTIONS: `--import=${file}`, DRILL_PROBE: socketPath },
    heap: async () => Number(await send('GET', '/')),
    setClock: async (milliseconds) =>
      void (await send('POST', `/${milliseconds}`)),
  };
}
