import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { Client, type ClientOptions } from './client.ts';
import { type Answer, Reader } from './reader.ts';
import type { Service } from './service.ts';
import { Tally } from './tally.ts';

export interface LoadOptions {
  /** Through which processes animals are created; each writer reads at once what it has created. */
  writers: Service[];
  /** Through which others read. */
  readers: Service[];
  /** Clients altogether: half of them write. */
  clients?: number;
  /** Whether what one process has acknowledged is at once seen through all: not so behind replicas. */
  isShared?: boolean;
  /** Of each client, by its number. */
  client?(at: number): ClientOptions;
}

const statuses = ['available', 'pending', 'sold'] as const;

/** Clients that create, find and list without a pause until they are stopped. */
export class Load {
  readonly tally = new Tally();
  readonly clients: number;
  readonly #run = randomBytes(4).toString('hex');
  readonly #loops: Promise<void>[];
  #isStopped = false;

  constructor({ writers, readers, clients = 16, isShared = true, client: optionsOf }: LoadOptions) {
    this.clients = clients;
    this.#loops = Array.from({ length: clients }, (_, at) => {
      const services = at % 2 === 0 ? writers : readers;
      const client = new Client(services[(at >> 1) % services.length]?.origin ?? '', optionsOf?.(at));
      const reader = new Reader(client, this.tally, isShared);
      return this.#repeat(
        client,
        at % 2 === 0 ? (turn) => this.#write(client, reader, `${at}-${turn}`) : () => reader.any(),
      );
    });
  }

  /** How long (ms) after this moment a creation was acknowledged that was sent after it: within half a minute. */
  async recoveryAfter(moment: number): Promise<number> {
    while ((this.tally.latest?.sentAt ?? 0) <= moment) {
      if (performance.now() - moment > 30_000) throw new Error('No creation has been acknowledged for 30 s.');
      await pause(5);
    }
    return (this.tally.latest?.answeredAt ?? 0) - moment;
  }

  /** Waits until every request has its answer. */
  async stop(): Promise<Tally> {
    this.#isStopped = true;
    await Promise.all(this.#loops);
    return this.tally;
  }

  async #repeat(client: Client, act: (turn: number) => Promise<Answer>): Promise<void> {
    for (let turn = 0; !this.#isStopped; turn++) {
      // Whoever is refused waits a little, as a client would.
      if ((await act(turn)) === 'failed') await pause(20);
    }
    client.close();
  }

  async #write(client: Client, reader: Reader, number: string): Promise<Answer> {
    const name = `drill ${this.#run}-${number}`;
    const categoryId = 1 + Math.floor(Math.random() * 500);
    const status = statuses[Math.floor(Math.random() * statuses.length)] ?? 'available';
    const sentAt = performance.now();
    const reply = await reader.count(client.post('/v1/pets', { name, categoryId, status }), 201, name);
    if (!reply) return 'failed';
    const animal = JSON.parse(reply);
    const creation = { name, origin: client.origin, sentAt, answeredAt: performance.now() };
    this.tally.acknowledge(animal.id, creation);
    return reader.own({ id: animal.id, name, categoryId, status }, reply);
  }
}
