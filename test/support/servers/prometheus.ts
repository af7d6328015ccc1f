import { execFile } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../process.ts';
import { asUser, type Home, newHome, type Program, startProgram, untilUp } from './program.ts';

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

export interface TestPrometheusOptions {
  /** Where to scrape: `127.0.0.1:9464`. */
  targets: string[];
  /** The alert rules, as text. */
  rules: string;
}

/** A private Prometheus on 127.0.0.1 that looks at the service, and at its rules, every second. */
export class TestPrometheus {
  readonly origin: string;
  readonly #home: Home;
  readonly #program: Program;

  private constructor(origin: string, home: Home, program: Program) {
    this.origin = origin;
    this.#home = home;
    this.#program = program;
  }

  static async start({ targets, rules }: TestPrometheusOptions): Promise<TestPrometheus> {
    const [port, home] = [await freePort(), await newHome('nobody')];
    const [file, log] = [join(home.path, 'prometheus.yaml'), join(home.path, 'log')];
    writeFileSync(join(home.path, 'alerts.yaml'), rules);
    writeFileSync(file, configuration(targets));
    const flags = [`--config.file=${file}`, `--storage.tsdb.path=${home.path}/data`];
    const listen = `--web.listen-address=127.0.0.1:${port}`;
    const program = startProgram(asUser('nobody', [binary, ...flags, listen]), home.path, log);
    const prometheus = new TestPrometheus(`http://127.0.0.1:${port}`, home, program);
    await untilUp(program, log, async () => (await fetch(`${prometheus.origin}/-/ready`)).ok);
    return prometheus;
  }

  async alerts(): Promise<Alert[]> {
    return (await this.#ask('/api/v1/alerts')).alerts;
  }

  /** The values of a query now, in no order. */
  async query(expression: string): Promise<number[]> {
    const { result } = await this.#ask(`/api/v1/query?query=${encodeURIComponent(expression)}`);
    return result.map(({ value }: { value: [number, string] }) => Number(value[1]));
  }

  async stop(): Promise<void> {
    await this.#program.stop('SIGKILL');
    this.#home.remove();
  }

  async #ask(path: string) {
    const response = await fetch(this.origin + path);
    const { status, data, error } = (await response.json()) as { status: string; data: any; error?: string };
    if (status !== 'success') throw new Error(`Prometheus: ${error}`);
    return data;
  }
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
