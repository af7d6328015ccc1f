import { hash, randomBytes } from 'node:crypto';
import { loadConfig } from '#engine/config/config.js';
import { Database } from '#engine/database/database.js';
import { modelOf } from '#engine/process/model.js';
import { modules } from '../../../src/modules.ts';
import type { TestDatabase } from '../database.ts';
import { eventually } from '../process.ts';
import { connected, query } from '../session.ts';
import { distribute, type Layout } from './citus.ts';

/**
 * TEST_CITUS: `reference` or the number of shards; TEST_DATABASE_URL then names
 * the coordinator's database `shop`.
 */
export const citusLayout: Layout | undefined = layoutFrom(
  process.env.TEST_CITUS,
);

function layoutFrom(text = ''): Layout | undefined {
  return text === '' || text === 'reference' ? text || undefined : Number(text);
}

/**
 * Copies a template database to every node of the cluster. A database with
 * Citus' extension, nodes, migrations and distribution takes a second and a
 * half to create, and a tenth of a second to copy.
 *
 * @param isEmpty with Citus' extension, but without tables
 */
export async function createOnCluster(
  server: string,
  isEmpty = false,
): Promise<TestDatabase> {
  const nodes = await nodesOf(server);
  const template = await templateOn(nodes, isEmpty ? undefined : citusLayout);
  const name = `animal_store_test_${randomBytes(8).toString('hex')}`;
  await onEach(nodes, `create database ${name} template ${template}`);
  return {
    env: { DATABASE_URL: at(nodes[0] as URL, name) },
    drop: () => dropOn(nodes, name),
  };
}

/**
 * Drops the coordinator's database first, which ends its sessions on the
 * workers. Citus' daemon would reconnect.
 */
async function dropOn(nodes: URL[], name: string): Promise<void> {
  for (const node of nodes) {
    await onEach(
      [node],
      `alter database ${name} allow_connections false`,
    ).catch(() => undefined);
    await eventually(async () => {
      await onEach([node], `drop database if exists ${name} with (force)`);
      return true;
    });
  }
}

/** The URLs of all nodes, the coordinator first. */
export async function nodesOf(server: string): Promise<URL[]> {
  const nodes = await query(
    server,
    'select nodename, nodeport from pg_dist_node order by groupid',
  );
  return nodes.map(({ nodename, nodeport }) => {
    const url = new URL(server);
    url.hostname = `${nodename}`;
    url.port = `${nodeport}`;
    return url;
  });
}

/**
 * Creates a template once per cluster, layout and set of migrations. @returns
 * its name
 */
async function templateOn(
  nodes: URL[],
  layout: Layout | undefined,
): Promise<string> {
  const [coordinator] = nodes as [URL];
  const { migrations } = modelOf(modules);
  const content = migrations
    .map(
      (one) => `${typeof one === 'object' && 'class' in one ? one.class : one}`,
    )
    .join();
  const name = `animal_store_template_${layout ?? 'empty'}_${hash('md5', content).slice(0, 8)}`;
  const session = await connected(at(coordinator, 'postgres'));
  try {
    await session.query(`select pg_advisory_lock(hashtext('${name}'))`);
    const found = await session.query(
      `select from pg_database where datname = '${name}' and not datallowconn`,
    );
    if (found.rowCount === 0) await makeTemplate(nodes, name, layout);
    return name;
  } finally {
    await session.end();
  }
}

async function makeTemplate(
  nodes: URL[],
  name: string,
  layout: Layout | undefined,
): Promise<void> {
  const [{ hostname, port }, ...workers] = nodes as [URL, ...URL[]];
  const database = at(nodes[0] as URL, name);
  await dropOn(nodes, name);
  await onEach(nodes, `create database ${name}`);
  await Promise.all(
    nodes.map((node) => query(at(node, name), 'create extension citus')),
  );
  await query(
    database,
    `select citus_set_coordinator_host('${hostname}', ${port})`,
  );
  for (const worker of workers)
    await query(
      database,
      `select citus_add_node('${worker.hostname}', ${worker.port})`,
    );
  if (layout) await distributeAt(database, layout);
  // A template can be copied only while it has no connections; Citus' own
  // daemon would keep one.
  await onEach(nodes, `alter database ${name} allow_connections false`);
  await onEach(
    nodes,
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`,
  );
}

async function distributeAt(url: string, layout: Layout): Promise<void> {
  const model = modelOf(modules);
  const database = await Database.open(
    loadConfig({ DATABASE_URL: url }).database,
    model,
  );
  await database.migrate().finally(() => database.close());
  await distribute(url, layout);
}

function at(node: URL, database: string): string {
  const url = new URL(node);
  url.pathname = `/${database}`;
  return url.href;
}

async function onEach(nodes: URL[], statement: string): Promise<void> {
  // Citus would repeat the statement on the other nodes.
  const alone = 'set citus.enable_create_database_propagation = off';
  await Promise.all(
    nodes.map((node) => query(at(node, 'postgres'), alone, statement)),
  );
}
