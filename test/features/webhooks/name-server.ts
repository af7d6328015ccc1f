import { createSocket } from 'node:dgram';
import { promises } from 'node:dns';
import { once } from 'node:events';

/**
 * A name server for the look-ups of this thread, until it is closed. It knows
 * IPv4 addresses. About a name with null it is silent until `speak`, and about
 * IPv6 addresses of `ipv4.example` for ever.
 */
export class NameServer {
  readonly asked = new Set<string>();
  readonly #held: Array<() => void> = [];
  readonly #socket = createSocket('udp4');
  readonly #resolver = promises.Resolver.prototype;
  readonly #resolve4 = this.#resolver.resolve4;

  constructor(readonly addresses: Record<string, string | null>) {
    this.#socket.on('message', (query, { port, address }) => {
      const name = nameIn(query);
      this.asked.add(name);
      const answer = answerTo(query, this.addresses[name]);
      const send = () => this.#socket.send(answer, port, address);
      const isSilent = name === 'ipv4.example' && !isOfIPv4(query);
      if (this.addresses[name] === null) this.#held.push(send);
      else if (!isSilent) send();
    });
  }

  async open() {
    this.#socket.bind(0, '127.0.0.1');
    await once(this.#socket, 'listening');
    const servers = [`127.0.0.1:${this.#socket.address().port}`];
    const resolve4 = this.#resolve4;
    this.#resolver.resolve4 = function (...asked: unknown[]) {
      this.setServers(servers);
      return resolve4.apply(this, asked as never) as never;
    };
  }

  speak() {
    for (const send of this.#held.splice(0)) send();
  }

  close() {
    this.#resolver.resolve4 = this.#resolve4;
    this.#socket.close();
  }
}

/** Where its first label begins (RFC 1035, section 4.1). */
const begin = 12;

function nameIn(query: Buffer) {
  const labels: string[] = [];
  for (let at = begin, length = query[at]; length; length = query[at]) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return labels.join('.').toLowerCase();
}

const endOf = (query: Buffer) => query.indexOf(0, begin) + 5;
const isOfIPv4 = (query: Buffer) => query.readUInt16BE(endOf(query) - 4) === 1;

function answerTo(query: Buffer, address: string | null | undefined) {
  const end = endOf(query);
  const records: number[] = [];
  if (address && isOfIPv4(query)) {
    const bytes = address.split('.').map(Number);
    records.push(0xc0, begin, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...bytes);
  }
  const answer = Buffer.from([...query.subarray(0, end), ...records]);
  answer.writeUInt16BE(address ? 0x8180 : 0x8183, 2);
  answer.fill(0, 6, begin);
  answer.writeUInt16BE(1, 4);
  answer.writeUInt16BE(Math.sign(records.length), 6);
  return answer;
}
