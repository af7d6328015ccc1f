import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { Client, type Reply } from '../client.ts';
import type { Drill } from '../drill.ts';
import { broken, closed, refused, Tally, unknown } from '../tally.ts';
import { verify } from '../verify.ts';
import { deployOnPostgres, lacksPostgres, longest } from './deployment.ts';

const statementTimeout = 2000;
const mutation =
  'mutation ($input: NewPet!) { createPet(input: $input) { id } }';

/**
 * Clients repeat each creation with its key through all faults until it
 * succeeds. Each pet must be stored once.
 */
export const repeated: Drill = {
  name: 'retries with Idempotency-Key',
  rounds: 12,
  missing: async () =>
    hasIdempotency() ? lacksPostgres() : 'this build has no Idempotency-Key',
  run: async (resources, _seconds, rounds) => {
    const deployment = await deployOnPostgres(resources, {
      DATABASE_STATEMENT_TIMEOUT_MS: `${statementTimeout}`,
      DRAIN_DELAY_MS: '200',
    });
    const { server } = deployment;
    const tally = new Tally();
    let isOver = false;
    let repeats = 0;
    const loops = Array.from({ length: 24 }, async (_, at) => {
      const client = new Client(deployment.service.origin, {
        reconnects: at % 3 === 0,
        timeoutMs: 3 * statementTimeout,
      });
      for (let turn = 0; !isOver; turn += 1)
        repeats += await create(
          client,
          tally,
          `repeated ${at}-${turn}`,
          at % 2 === 0,
        );
      client.close();
    });
    const injections = [
      async () => [
        await deployment.service.stop('SIGKILL'),
        await deployment.restart(),
      ],
      async () => [await server.stop('immediate'), await server.start()],
      async () => [
        server.pause(),
        await pause(2 * statementTimeout),
        server.resume(),
      ],
      async () => [
        await deployment.service.stop('SIGTERM'),
        await deployment.restart(),
      ],
    ];
    const recoveries: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      await pause(400);
      await injections[round % injections.length]?.();
      const recoveryStart = performance.now();
      while ((tally.latest?.sentAt ?? 0) <= recoveryStart) await pause(5);
      recoveries.push((tally.latest?.answeredAt ?? 0) - recoveryStart);
    }
    isOver = true;
    await Promise.all(loops);
    return {
      rounds,
      tally,
      verdict: await verify(tally, deployment.database, [deployment.service]),
      allowed: [broken, closed, refused, unknown, inProgress],
      recovery: longest(recoveries),
      note: `${repeats} repeated requests`,
    };
  },
};

const inProgress = '409 in progress';

/** @returns the number of repetitions */
async function create(
  client: Client,
  tally: Tally,
  name: string,
  isRest: boolean,
): Promise<number> {
  const key = randomUUID();
  for (let repetition = 0; ; repetition += 1) {
    tally.requests += 1;
    const sentAt = performance.now();
    const reply = await (isRest
      ? byRest(client, name, key)
      : byGraphQL(client, name, key));
    const id = idIn(reply);
    if (id !== undefined) {
      tally.acknowledge(id, {
        name,
        origin: client.origin,
        sentAt,
        answeredAt: performance.now(),
      });
      return repetition;
    }
    if (reply.kind === 'hung') tally.hung += 1;
    else tally.fail(kindOf(reply));
    await pause(20);
  }
}

const byRest = (client: Client, name: string, key: string) =>
  client.post(
    '/v1/pets',
    { name, categoryId: 1 },
    { 'idempotency-key': `"${key}"` },
  );

const byGraphQL = (client: Client, name: string, key: string) =>
  client.post(
    '/graphql',
    { query: mutation, variables: { input: { name, categoryId: '1' } } },
    { 'idempotency-key': key },
  );

function idIn(reply: Reply): number | undefined {
  if (reply.kind !== 'answer' || !reply.text.startsWith('{')) return undefined;
  const body = JSON.parse(reply.text);
  const id = reply.status === 201 ? body.id : body.data?.createPet?.id;
  return id === undefined ? undefined : Number(id);
}

function kindOf(reply: Reply): string {
  if (reply.kind !== 'answer') return reply.kind === 'closed' ? closed : broken;
  const status = statusIn(reply.text) ?? reply.status;
  if (status === 409) return inProgress;
  return status === 503
    ? reply.retryAfter
      ? refused
      : unknown
    : `${status} ${reply.text.slice(0, 200)}`;
}

/** GraphQL responses have the status in their body. */
function statusIn(text: string): number | undefined {
  return text.startsWith('{')
    ? JSON.parse(text).errors?.[0]?.extensions?.status
    : undefined;
}

/** The OpenAPI contract is generated from the routes. */
function hasIdempotency(): boolean {
  return /idempotency-key/i.test(readFileSync('schema/openapi.json', 'utf8'));
}
