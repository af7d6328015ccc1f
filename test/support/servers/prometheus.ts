import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { freePort } from '../process.ts';
import { startConfigured } from './program.ts';

const binary = '/usr/bin/prometheus';

/** Whether Prometheus and its promtool are installed (Debian: prometheus). */
export const hasPrometheus =
  existsSync(binary) && existsSync('/usr/bin/promtool');

/** Runs promtool in a folder. @returns whether it succeeded, and its output */
export function promtool(
  args: string[],
  cwd = 'operations/prometheus',
): Promise<{ isOk: boolean; output: string }> {
  return new Promise((done) => {
    execFile('/usr/bin/promtool', args, { cwd }, (error, stdout, stderr) => {
      done({ isOk: error === null, output: stdout + stderr });
    });
  });
}

/** An alert in the API of Prometheus. */
export interface Alert {
  labels: Record<string, string>;
  annotations: Record<string, string>;
  state: 'pending' | 'firing';
}

export type TestPrometheus = Awaited<ReturnType<typeof startPrometheus>>;

/**
 * Starts a private Prometheus on 127.0.0.1 that scrapes the service and
 * evaluates the rules every second.
 *
 * @param targets the addresses to scrape, such as `127.0.0.1:9464`
 * @param rules the alert rules, as text
 */
export async function startPrometheus({
  targets,
  rules,
}: {
  targets: string[];
  rules: string;
}) {
  const origin = `http://127.0.0.1:${await freePort()}`;
  const files = {
    'alerts.yaml': rules,
    'prometheus.yaml': configuration(targets),
  };
  const command = (folder: string) => [
    binary,
    `--config.file=${folder}/prometheus.yaml`,
    `--storage.tsdb.path=${folder}/data`,
    `--web.listen-address=${new URL(origin).host}`,
  ];
  const { stop } = await startConfigured(
    'nobody',
    files,
    command,
    async () => (await fetch(`${origin}/-/ready`)).ok,
  );
  const get = async (path: string) => {
    const { status, data, error } = (await (
      await fetch(origin + path)
    ).json()) as Record<string, any>;
    if (status !== 'success') throw new Error(`Prometheus: ${error}`);
    return data;
  };
  return {
    alerts: async (): Promise<Alert[]> => (await get('/api/v1/alerts')).alerts,
    /** The current values of a query, in no order. */
    query: async (expression: string): Promise<number[]> => {
      const { result } = await get(
        `/api/v1/query?query=${encodeURIComponent(expression)}`,
      );
      return result.map(({ value }: { value: [number, string] }) =>
        Number(value[1]),
      );
    },
    stop,
  };
}

const configuration = (targets: string[]) => `global:
  scrape_interval: 1s
  evaluation_interval: 1s
rule_files: [alerts.yaml]
scrape_configs:
  - job_name: animal-store
    scrape_timeout: 1s
    static_configs:
      - targets: ${JSON.stringify(targets)}
`;
