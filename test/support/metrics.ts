import { send } from './http.ts';
import {
  bootstrapKey,
  type Env,
  freePort,
  type ServerProcess,
  type StartOptions,
  startServer,
} from './process.ts';

/**
 * Values by series, named as in Prometheus' text format: `name{label="value"}`.
 */
export type Series = Map<string, number>;

/**
 * @throws Error for a line that violates the text format, or a series that
 *   occurs twice
 */
export function seriesIn(text: string): Series {
  const series: Series = new Map();
  for (const line of text.split('\n')) {
    if (line === '' || /^# (?:HELP|TYPE) [a-z\d_]+ ./.test(line)) continue;
    const [, name, value] =
      /^([a-z\d_]+(?:\{(?:[a-z\d_]+="(?:[^"\\]|\\.)*",?)*\})?) (\S+)$/.exec(
        line,
      ) ?? [];
    if (!name || series.has(name) || Number.isNaN(Number(value)))
      throw new Error(`Not a series of its own: ${line}`);
    series.set(name, Number(value));
  }
  return series;
}

export interface MeasuredServer extends ServerProcess {
  /** The origin of the port for operators. */
  operations: string;
  metrics(): Promise<Series>;
}

/** Starts a server with a key, and with a port for operators. */
export async function startMeasured(
  env: Env,
  options: StartOptions = {},
): Promise<MeasuredServer> {
  const port = await freePort();
  const operations = `http://127.0.0.1:${port}`;
  const server = await startServer(
    { BOOTSTRAP_API_KEY: bootstrapKey, OPERATIONS_PORT: `${port}`, ...env },
    options,
  );
  return {
    ...server,
    operations,
    metrics: async () =>
      seriesIn((await send(operations, { path: '/metrics' })).text),
  };
}
