import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { freePort } from '../process.ts';
import { startConfigured } from './program.ts';

const binary = '/usr/bin/prometheus';

/** Whether there is a Prometheus to run, with its promtool (Debian: prometheus). */
export const hasPrometheus = existsSync(binary) && existsSync('/usr/bin/promtool');

/** Runs promtool in a folder. @returns whether it is content, and what it says */
export function promtool(args: string[], cwd = 'operations/prometheus'): Promise<{ isContent: boolean; said: string }> {
  return new Promise((done) => {
    execFile('/usr/bin/promtool', args, { cwd }, (error, stdout, stderr) => {
      done({ isContent: error === null, said: stdout + stderr });
    });
  });
}

/** An alert, as Prometheus tells it. */
export interface Alert {
  labels: Record<string, string>;
  annotations: Record<string, string>;
  state: 'pending' | 'firing';
}

export type TestPrometheus = Awaited<ReturnType<typeof startPrometheus>>;

/**
 * Starts a private Prometheus on 127.0.0.1 that looks at the service, and at its rules, every second.
 *
 * @param targets where to scrape: `127.0.0.1:9464`
 * @param rules the alert rules, as text
 */
export async function startPrometheus({ targets, rules }: { targets: string[]; rules: string }) {
  const origin = `http://127.0.0.1:${await freePort()}`;
  const files = { 'alerts.yaml': rules, 'prometheus.yaml': configuration(targets) };
  const command = (folder: string) => [
    binary,
    `--config.file=${folder}/prometheus.yaml`,
    `--storage.tsdb.path=${folder}/data`,
    `--web.listen-address=${new URL(origin).host}`,
  ];
  const { stop } = await startConfigured('nobody', files, command, async () => (await fetch(`${origin}/-/ready`)).ok);
  const ask = async (path: string) => {
    const { status, data, error } = (await (await fetch(origin + path)).json()) as Record<string, any>;
    if (status !== 'success') throw new Error(`Prometheus: ${error}`);
    return data;
  };
  return {
    alerts: async (): Promise<Alert[]> => (await ask('/api/v1/alerts')).alerts,
    /** The values of a query now, in no order. */
    query: async (expression: string): Promise<number[]> => {
      const { result } = await ask(`/api/v1/query?query=${encodeURIComponent(expression)}`);
      return result.map(({ value }: { value: [number, string] }) => Number(value[1]));
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
