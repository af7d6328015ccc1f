import { execFileSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { availableParallelism, loadavg } from 'node:os';
import pg from 'pg';
import { distribute } from '../test/support/servers/citus.ts';
import { median } from './measure.ts';
import {
  type Call,
  findStatement,
  type ListQuery,
  listStatement,
} from './plans.ts';
import { table, writeResult } from './report.ts';
import { statuses } from './workloads.ts';

/**
 * Measures lists and finds on one node, on a reference table read through a
 * worker, and on a table distributed by id.
 *
 *     BENCH_CITUS=postgres://postgres@127.0.0.1:7000/shop npm run bench:citus
 *
 * BENCH_CITUS is a database on the coordinator without the service's tables.
 * They are created, and dropped at the end.
 */
const petCount = 100_000;
const runs = 40;
/**
 * Concurrent statements of a batch that the service has split: a third of its
 * pool.
 */
const concurrency = 3;

interface Case {
  title: string;
  calls: Call[];
}

type Topology = {
  title: string;
  layout?: 'reference' | number;
  readsThroughWorker?: boolean;
};

const topologies: Topology[] = [
  { title: 'one node' },
  {
    title: 'reference table, through a worker',
    layout: 'reference',
    readsThroughWorker: true,
  },
  { title: 'distributed, 8 shards', layout: 8 },
  { title: 'distributed, 32 shards', layout: 32 },
];

const heading = `# Growth on Citus

Citus 13.2 on PostgreSQL 15: a coordinator and two workers on one machine, ${petCount.toLocaleString('en')} animals, warm connections, median of 30,
the service's prepared statements. Measured with \`npm run bench:citus\` (bench/citus.ts), load average ${loadavg()[0]?.toFixed(0)} on ${availableParallelism()} cores.
Other programs disturb the times; compare the ratios and the counts. With nodes on separate machines a statement on a
shard costs a round trip, but no CPU time of the coordinator.

- With a reference table each request is one statement on one node. Compared with PostgreSQL alone, lists cost 0.7 to 1.9
  times as much, finds and batches three times (Citus plans, too). So read capacity grows with the number of nodes, which
  one machine cannot show.
- Distributed by id, a find is one statement on one shard. A list is one statement on every shard, so its cost grows with
  the number of shards. Use no more shards than you will ever have workers.
- On a distributed table the service splits a batch of different lists into single statements: ${concurrency} at a time, each on every shard.
`;

async function main(url: string): Promise<void> {
  const rows: string[][] = [];
  for (const topology of topologies) {
    const coordinator = new pg.Client(url);
    await coordinator.connect();
    try {
      await prepare(url, coordinator, topology);
      const readers: pg.Client[] = [];
      while (readers.length < concurrency)
        readers.push(await connect(topology, url, coordinator));
      for (const one of await cases(topology))
        rows.push([
          one.title,
          topology.title,
          ...(await measure(readers, one)),
        ]);
      await Promise.all(readers.map((reader) => reader.end()));
    } finally {
      await coordinator.query(
        'drop table if exists pet, api_key, deprecated_call, idempotency_key, mikro_orm_migrations',
      );
      await coordinator.end();
    }
    process.stderr.write(`${topology.title}\n`);
  }
  const order = [...new Set(rows.map(([title]) => title))];
  rows.sort(([a], [b]) => order.indexOf(a) - order.indexOf(b));
  const header = [
    'request',
    'table',
    'statements of the service',
    'statements on shards',
    'ms',
    'times one node',
  ];
  const report = [heading, ...table(header, withRatios(rows)), ''].join('\n');
  process.stdout.write(report);
  writeResult('citus.md', report);
}

async function prepare(
  url: string,
  coordinator: pg.Client,
  { layout }: Topology,
): Promise<void> {
  execFileSync(process.execPath, ['dist/src/cli.js', 'migrate'], {
    env: { ...process.env, DATABASE_URL: url },
  });
  if (layout) await distribute(url, layout);
  await coordinator.query(
    `insert into pet (name, category_id, status) select 'Animal ' || n, 1 + n % 500,
       case when n % 1000 = 0 then 'sold' when n % 20 = 0 then 'pending' else 'available' end
     from generate_series(1, ${petCount}) n`,
  );
  await coordinator.query('vacuum analyze pet');
}

async function connect(
  { readsThroughWorker }: Topology,
  url: string,
  coordinator: pg.Client,
): Promise<pg.Client> {
  const target = new URL(url);
  if (readsThroughWorker) {
    const { rows } = await coordinator.query(
      'select nodename, nodeport from pg_dist_node where groupid > 0 limit 1',
    );
    target.hostname = rows[0].nodename;
    target.port = `${rows[0].nodeport}`;
  }
  const client = new pg.Client({
    connectionString: target.href,
    options: '-c jit=off',
  });
  await client.connect();
  return client;
}

async function cases({ layout }: Topology): Promise<Case[]> {
  const list = async (title: string, query: ListQuery) => ({
    title,
    calls: [await listStatement([query])],
  });
  const batch = Array.from({ length: 16 }, (_, at) => ({
    limit: 20,
    after: (at * petCount) / 16,
    status: [undefined, ...statuses][at % 4],
  }));
  const isSplit = typeof layout === 'number';
  const calls = isSplit
    ? await Promise.all(batch.map((one) => listStatement([one])))
    : [await listStatement(batch)];
  return [
    await list('list, first page', { limit: 20 }),
    await list('list, deep page', { limit: 20, after: petCount * 0.9 }),
    await list('list, first page, sold', { limit: 20, status: 'sold' }),
    await list('list of 100, first page', { limit: 100 }),
    { title: 'find', calls: [await findStatement([petCount / 2])] },
    {
      title: '16 finds at once',
      calls: [await findStatement(batch.map((_, at) => 1 + at * 6000))],
    },
    { title: '16 different lists at once', calls },
  ];
}

/**
 * Median time of all calls of a case, with as many connections as the service
 * uses.
 */
async function measure(
  readers: pg.Client[],
  { calls }: Case,
): Promise<string[]> {
  const times: number[] = [];
  for (let run = 0; run < runs; run += 1) {
    const start = performance.now();
    const rest = [...calls];
    await Promise.all(
      readers.map(async (reader) => {
        for (let call = rest.shift(); call; call = rest.shift()) {
          await reader.query({
            name: hash('md5', call.text),
            text: call.text,
            values: call.values,
          });
        }
      }),
    );
    // Ignores the first runs, which open the connections between the nodes and
    // plan the statements.
    if (run >= 10) times.push(performance.now() - start);
  }
  const [reader] = readers as [pg.Client];
  let tasks = 0;
  for (const call of calls) tasks += await tasksOf(reader, call);
  return [`${calls.length}`, `${tasks}`, median(times).toFixed(2)];
}

/** Number of statements into which Citus splits one; 1 without distribution. */
async function tasksOf(
  reader: pg.Client,
  { text, values }: Call,
): Promise<number> {
  const { rows } = await reader.query({ text: `explain ${text}`, values });
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
  return Number(/Task Count: (\d+)/.exec(plan)?.[1] ?? 1);
}

function withRatios(rows: string[][]): string[][] {
  const first = new Map<string, number>();
  return rows.map((row) => {
    const [title = '', , , , milliseconds] = row;
    if (!first.has(title)) first.set(title, Number(milliseconds));
    return [
      ...row,
      (Number(milliseconds) / (first.get(title) ?? 1)).toFixed(1),
    ];
  });
}

const { BENCH_CITUS: url } = process.env;
if (url) await main(url);
else {
  process.stderr.write(
    'Set BENCH_CITUS to a database without tables on the coordinator (see bench/citus.ts).\n',
  );
  process.exitCode = 1;
}
