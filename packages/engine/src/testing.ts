import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LogOutput } from '@animal-store/log/log-output';
import { loadConfig } from './config/config.ts';
import { complete, type Service } from './feature.ts';
import { serve } from './process/serve.ts';
import { Log } from './runtime/log/log.ts';

/**
 * Serves on a free port, in one process. Without DATABASE_URL the service must
 * list `embeddedStore`: its store is a new folder, which `close` removes.
 *
 * @param env the environment; nothing is logged by default
 * @returns its address, and a key with all rights
 */
export async function startForTest(
  service: Service,
  env: NodeJS.Dict<string> = {},
) {
  const folder = await mkdtemp(join(tmpdir(), `${service.name}-`));
  const remove = () => rm(folder, { recursive: true, force: true });
  try {
    const running = await serveIn(folder, complete(service), env);
    const close = async () => {
      await running.close(0);
      await remove();
    };
    return { origin: running.origin, key: running.key, close };
  } catch (error) {
    await remove();
    throw error;
  }
}

async function serveIn(
  folder: string,
  service: Service,
  env: NodeJS.Dict<string>,
) {
  const key = randomUUID();
  const defaults = {
    LOG_LEVEL: 'silent',
    EVENT_LOOP_MAX_DELAY_MS: '0',
    DATA_DIR: folder,
    BOOTSTRAP_API_KEY: key,
  };
  const owners = [...(await service.modules()), ...service.features];
  const config = loadConfig({ ...defaults, ...env }, owners, service);
  const output = new LogOutput();
  const { address, close } = await serve({
    service,
    config: { ...config, port: 0 },
    log: new Log(config.log, output),
    output,
    onLost(error) {
      throw error;
    },
  });
  return { origin: await address, key, close };
}
