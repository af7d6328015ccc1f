import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { Client, type ClientOptions } from './client.ts';
import { type Answer, Reader } from './reader.ts';
import type { Service } from './service.ts';
import { Tally } from './tally.ts';

export interface LoadOptions {
  /**
   * Processes through which pets are created. Each writer then reads its own
   * pet.
   */
  writers: Service[];
  /** Processes through which the other clients read. */
  readers: Service[];
  /** Number of clients; half of them write. */
  clients?: number;
  /**
   * Every process reads every acknowledged pet immediately; false behind
   * replicas.
   */
  isConsistent?: boolean;
  /** Options of the client with this number. */
  client?(at: number): ClientOptions;
}

const statuses = ['available', 'pending', 'sold'] as const;

/**
 * Clients that create, find and list pets without a pause until they are
 * stopped.
 */
export class Load {
  readonly tally = new Tally();
  readonly clients: number;
  readonly #run = randomBytes(4).toString('hex');
  readonly #loops: Promise<void>[];
  #isStopped = false;

  constructor({
    writers,
    readers,
    clients = 16,
    isConsistent = true,
    client: optionsOf,
  }: LoadOptions) {
    this.clients = clients;
    this.#loops = Array.from({ length: clients }, (_, at) => {
      const services = at % 2 === 0 ? writers : readers;
      const client = new Client(
        services[(at >> 1) % services.length]?.origin ?? '',
        optionsOf?.(at),
      );
      const reader = new Reader(client, this.tally, isConsistent);
      return this.#repeat(
        client,
        at % 2 === 0
          ? (turn) => this.#write(client, reader, `${at}-${turn}`)
          : () => reader.readRandom(),
      );
    });
  }

  /**
   * @returns the time (ms) from this moment until the first creation sent after
   *   it was acknowledged
   * @throws Error after 30 seconds
   */
  async recoveryAfter(moment: number): Promise<number> {
    while ((this.tally.latest?.sentAt ?? 0) <= moment) {
      if (performance.now() - moment > 30_000)
        throw new Error('No creation has been acknowledged for 30 s.');
      await pause(5);
    }
    return (this.tally.latest?.answeredAt ?? 0) - moment;
  }

  /** Ends the load and waits for all responses. */
  async stop(): Promise<Tally> {
    this.#isStopped = true;
    await Promise.all(this.#loops);
    return this.tally;
  }

  async #repeat(
    client: Client,
    send: (turn: number) => Promise<Answer>,
  ): Promise<void> {
    for (let turn = 0; !this.#isStopped; turn++) {
      // A refused client pauses, as real clients do.
      if ((await send(turn)) === 'failed') await pause(20);
    }
    client.close();
  }

  async #write(
    client: Client,
    reader: Reader,
    number: string,
  ): Promise<Answer> {
    const name = `drill ${this.#run}-${number}`;
    const categoryId = 1 + Math.floor(Math.random() * 500);
    const status =
      statuses[Math.floor(Math.random() * statuses.length)] ?? 'available';
    const sentAt = performance.now();
    const reply = await reader.record(
      client.post('/v1/pets', { name, categoryId, status }),
      201,
      name,
    );
    if (!reply) return 'failed';
    const pet = JSON.parse(reply);
    const creation = {
      name,
      origin: client.origin,
      sentAt,
      answeredAt: performance.now(),
    };
    this.tally.acknowledge(pet.id, creation);
    return reader.checkOwn({ id: pet.id, name, categoryId, status }, reply);
  }
}
