import { Command, InvalidArgumentError, Option } from 'commander';
import { kinds, type Measured, measure } from './bench.ts';
import { exitCodes, type Output, withExamples } from './terminal/program.ts';

interface Flags {
  url: URL;
  key?: string;
  seconds: number;
  connections: number;
  json?: true;
}

/** `bench`: how fast a running service answers, seen from one client process. */
export function benchCommand({ print, note }: Output): Command {
  const command = new Command('bench')
    .description('ask a running service for lists, and print how many answers a second and how long they took')
    .option('--url <url>', 'where it is', urlFrom, new URL('http://127.0.0.1:4000'))
    .addOption(new Option('--key <key>', 'an API key; it may only read').env('ANIMAL_STORE_KEY'))
    .option('--seconds <n>', 'how long each kind of request is sent, 1 to 600', upTo(600), 5)
    .option('--connections <n>', 'how many wait for an answer at a time, 1 to 256', upTo(256), 16)
    .option('--json', 'print JSON, and nothing else')
    .action(async ({ url, key, seconds, connections, json }: Flags) => {
      if (!key) return command.error('error: a key is needed: --key, or ANIMAL_STORE_KEY');
      const results: Measured[] = [];
      for (const kind of kinds) {
        results.push(await measure({ url, key, duration: seconds * 1000, connections }, kind));
        if (!json) print(told(results.at(-1) as Measured));
      }
      if (json) print(JSON.stringify(results));
      else
        note(
          'One client on one core: a lower bound, and only comparable on the same machine. `npm run bench` has more.',
        );
      if (results.some(({ others }) => Object.keys(others).length > 0)) process.exitCode = exitCodes.failed;
    });
  return withExamples(
    command,
    'ANIMAL_STORE_KEY=ask_... animal-store bench',
    'animal-store bench --url http://127.0.0.1:5000 --key ask_... --seconds 10 --json',
  );
}

function told({ what, answers, perSecond, p50, p99, others }: Measured): string {
  const failures = Object.entries(others).map(([status, count]) => `, ${count} times ${status}`);
  const times = answers > 0 ? `, p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms` : '';
  return `${what}: ${perSecond}/s${times}${failures.join('')}`;
}

function urlFrom(text: string): URL {
  if (!URL.canParse(text) || new URL(text).protocol !== 'http:') {
    throw new InvalidArgumentError('An address like http://127.0.0.1:4000.');
  }
  return new URL(text);
}

const upTo = (most: number) => (text: string) => {
  if (!/^[1-9]\d*$/.test(text) || Number(text) > most) throw new InvalidArgumentError(`1 to ${most}.`);
  return Number(text);
};
