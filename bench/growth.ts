import { BenchDatabase } from './database.ts';
import { encodeRequest, leastDisturbed } from './load.ts';
import { median } from './measure.ts';
import { databaseUrl } from './options.ts';
import {
  type Call,
  explain,
  findStatement,
  type ListQuery,
  listStatement,
} from './plans.ts';
import { requireBuild } from './prepare.ts';
import { ourProgram } from './programs.ts';
import { table, writeResult } from './report.ts';
import { type Server, start } from './server.ts';
import { ourRest } from './systems.ts';
import { UserError } from './user-error.ts';
import { type Operation, seededRandom, statuses } from './workloads.ts';

/**
 * Measures how the cost of the service's list and find grows with the number of
 * pets. One in a thousand is sold.
 */

const shares = { available: 95, pending: 4.9 };
const rounds = 3;
const seconds = 1;

interface Case {
  title: string;
  /**
   * Requests of the load; undefined for batches, which the load does not form
   * reliably.
   */
  operations: Operation[] | undefined;
  call: Call;
}

async function main(): Promise<void> {
  const url = databaseUrl(process.env);
  requireBuild();
  const sizes = [
    1_000,
    1_000_000,
    ...(process.argv.includes('--huge') ? [10_000_000] : []),
  ];
  const database = await BenchDatabase.create(url);
  const rows: string[][] = [];
  const plans: string[] = [];
  try {
    for (const petCount of sizes) {
      await database.seed(petCount, shares);
      const server = await start(ourProgram, ourRest, database.url);
      try {
        for (const one of await cases(petCount)) {
          const cpu = one.operations
            ? (await serverMicros(server, one.operations)).toFixed(0)
            : '';
          const custom = await explain(database.client, one.call, 'custom');
          const generic = await explain(database.client, one.call, 'generic');
          const figures = [
            custom.milliseconds.toFixed(3),
            generic.milliseconds.toFixed(3),
            String(generic.buffers),
          ];
          rows.push([
            one.title,
            petCount.toLocaleString('en'),
            cpu,
            ...figures,
          ]);
          process.stderr.write(`${rows.at(-1)?.join('  ')}\n`);
          if (petCount === sizes.at(-1))
            plans.push(
              `### ${one.title}`,
              '',
              fenced(one.call.text, generic.plan),
              '',
            );
        }
      } finally {
        await server.stop();
      }
    }
  } finally {
    await database.drop();
  }
  const report = [...heading(rows), ...plans].join('\n');
  process.stdout.write(report);
  writeResult('growth.md', report);
}

async function cases(petCount: number): Promise<Case[]> {
  const deep = Math.floor(petCount * 0.9);
  const list = async (title: string, query: ListQuery): Promise<Case> => {
    const { limit, status, after } = query;
    const operation: Operation = {
      kind: 'list',
      limit,
      ...(status && { status }),
      ...(after && { after }),
    };
    return {
      title,
      operations: [operation],
      call: await listStatement([query]),
    };
  };
  const lists: Case[] = [];
  for (const status of [undefined, ...statuses]) {
    const statusName = status ?? 'any status';
    lists.push(
      await list(`list, first page, ${statusName}`, { limit: 20, status }),
    );
    lists.push(
      await list(`list, deep page, ${statusName}`, {
        limit: 20,
        status,
        after: deep,
      }),
    );
  }
  const random = seededRandom(1);
  const ids = Array.from(
    { length: 2000 },
    () => 1 + Math.floor(random() * petCount),
  );
  const batch = ids.slice(0, 16).map((after, at) => ({
    limit: 20,
    after,
    status: [undefined, ...statuses][at % 4],
  }));
  return [
    ...lists,
    {
      title: 'find',
      operations: ids.map((id) => ({ kind: 'find', id })),
      call: await findStatement(ids.slice(0, 1)),
    },
    {
      title: 'batch of 16 different lists',
      operations: undefined,
      call: await listStatement(batch),
    },
    {
      title: 'batch of 16 finds',
      operations: undefined,
      call: await findStatement(ids.slice(0, 16)),
    },
  ];
}

/**
 * Median CPU time of the server per request. With one connection requests share
 * no batches.
 */
async function serverMicros(
  server: Server,
  operations: Operation[],
): Promise<number> {
  const requests = operations.map((operation) =>
    encodeRequest(ourRest.adapter.request(operation)),
  );
  const job = {
    port: server.port,
    pid: server.pid,
    requests,
    connections: 1,
    warmUp: 500,
    seconds,
  };
  const results: number[] = [];
  for (let round = 0; round < rounds; round++)
    results.push((await leastDisturbed(job, 2)).serverMicros);
  return median(results);
}

function heading(rows: string[][]): string[] {
  const header = [
    'request',
    'animals',
    'server CPU us',
    'PostgreSQL ms, custom plan',
    'PostgreSQL ms, generic plan',
    'buffers',
  ];
  const ordered = rows.toSorted(
    ([a = ''], [b = '']) => titles(rows).indexOf(a) - titles(rows).indexOf(b),
  );
  return [
    '# Growth of the cost',
    '',
    `Statuses: ${shares.available}% available, ${shares.pending}% pending, 0.1% sold. Deep pages start after 90% of the ids.`,
    'Explanations: [README](../README.md).',
    '',
    ...table(header, ordered),
    '',
    '## Plans at the largest size',
    '',
  ];
}

function titles(rows: string[][]): string[] {
  return [...new Set(rows.map(([title = '']) => title))];
}

function fenced(statement: string, plan: string): string {
  const lines = statement.split('\n').map((line) => line.replace(/^ {4}/, ''));
  return `\`\`\`\n${lines.join('\n').trim()}\n\n${plan}\n\`\`\``;
}

main().catch((error: unknown) => {
  process.stderr.write(
    `${error instanceof UserError ? error.message : (error as Error).stack}\n`,
  );
  process.exit(1);
});
