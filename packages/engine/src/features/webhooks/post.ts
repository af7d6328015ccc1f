import { createHmac } from 'node:crypto';
import { promises as dns, lookup } from 'node:dns';
import type { ClientRequest, IncomingMessage } from 'node:http';
import https from 'node:https';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { exact } from '@animal-store/exact-json';
import { badInput } from '../../errors.ts';

/** An import of it would load `fetch`. */
const http = process.getBuiltinModule('node:http');

/** In milliseconds. */
const timeout = 10_000;
/** How long (ms) a connection stays open for the next event. */
const longestIdle = 1000;
/**
 * Characters that are read of an answer. A challenge is short, and a thousand
 * answers may arrive at once.
 */
const mostRead = 8192;

/** Blocks of special purposes (IANA), and those that lead to IPv4. */
const special = blocksOf(
  '0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/3 2001::/23 2001:db8::/32 2002::/16 3fff::/20',
);
/** Mapped and local addresses of IPv6 are beyond it. */
const unicast = blocksOf('0.0.0.0/0 2000::/3');

function blocksOf(list: string) {
  const blocks = new BlockList();
  for (const block of list.split(' ')) {
    const [address = '', prefix] = block.split('/');
    blocks.addSubnet(address, Number(prefix), familyOf(address));
  }
  return blocks;
}

function familyOf(address: string) {
  return isIP(address) === 6 ? 'ipv6' : 'ipv4';
}

function isPublic(address: string) {
  const family = familyOf(address);
  return unicast.check(address, family) && !special.check(address, family);
}

/**
 * The connection gets the addresses that it has checked. The error does not
 * tell which private names exist. `lookup` would wait in a thread for a silent
 * name server, and the look-ups of the database behind it.
 */
export const publicOnly: LookupFunction = async (host, _options, done) => {
  // Each reads anew which name servers there are. Some never answer for IPv6.
  const resolver = new dns.Resolver({ timeout: 1500, tries: 2 });
  const asked = [resolver.resolve4(host), resolver.resolve6(host)];
  const answers = await Promise.allSettled(asked);
  const found = answers.flatMap((answer) =>
    answer.status === 'fulfilled' ? answer.value : [],
  );
  const isOpen = found.length > 0 && found.every(isPublic);
  done(
    isOpen ? null : new Error('It has no public address.'),
    found.map((address) => ({ address, family: isIP(address) })),
  );
};

/** Where messages are sent. */
export interface Receiver {
  readonly url: string;
  /** Each signs. */
  readonly secrets: readonly string[];
  /** The id of a host's subscription. */
  readonly subscription: string | null;
}

/** What is sent. */
export interface Message {
  readonly id: string;
  readonly body: object;
}

/** Posts signed messages (standardwebhooks.com). It follows no redirect. */
export class Courier {
  readonly #closing = new AbortController();
  readonly #agent;

  /** @param isLocal for development */
  constructor(private readonly isLocal: boolean) {
    this.#agent = new https.Agent({
      keepAlive: true,
      timeout: longestIdle,
      // Of each address; 250 by default, and a far one needs more.
      autoSelectFamilyAttemptTimeout: 2000,
      lookup: isLocal ? lookup : publicOnly,
    });
  }

  /** @throws StoreError BAD_USER_INPUT for an address that is not permitted */
  urlOf(address: string) {
    const { isLocal } = this;
    const url = URL.parse(address);
    const { protocol = '', hostname = '', username, password } = url ?? {};
    const host = hostname.replace(/[[\]]/g, '');
    const isOpen = isLocal || !isIP(host) || isPublic(host);
    const isSpoken = protocol === 'https:' || (isLocal && protocol === 'http:');
    if (url && isOpen && isSpoken && !username && !password) return url;
    throw badInput('url must be a public https:// address without a password.');
  }

  get isClosed() {
    return this.#closing.signal.aborted;
  }

  close() {
    this.#closing.abort();
    this.#agent.destroy();
  }

  /** @returns the status of the answer, and its beginning */
  async post(
    { url: address, secrets, subscription }: Receiver,
    { id, body: content }: Message,
  ): Promise<{ status: number; text: string }> {
    const url = this.urlOf(address);
    const body = JSON.stringify(content, exact);
    const time = `${Math.floor(Date.now() / 1000)}`;
    const signatures = secrets.map((secret) => {
      const key = Buffer.from(secret.replace('whsec_', ''), 'base64');
      const code = createHmac('sha256', key).update(`${id}.${time}.${body}`);
      return `v1,${code.digest('base64')}`;
    });
    const headers = {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': time,
      'webhook-signature': signatures.join(' '),
      ...(subscription && { 'x-mcp-subscription-id': subscription }),
    };
    const signal = AbortSignal.any([
      this.#closing.signal,
      AbortSignal.timeout(timeout),
    ]);
    const options = { method: 'POST', headers, signal };
    const request =
      url.protocol === 'https:'
        ? https.request(url, { ...options, agent: this.#agent })
        : http.request(url, options);
    request.end(body);
    const response = await responseOf(request);
    let text = '';
    for await (const piece of response) {
      text += piece;
      if (text.length > mostRead) break;
    }
    return { status: response.statusCode ?? 0, text };
  }
}

/** A 101 closes the connection, and is no response. */
function responseOf(request: ClientRequest) {
  const closed = new Error('It closed the connection without an answer.');
  return new Promise<IncomingMessage>((resolve, reject) => {
    request.once('response', resolve);
    // The answer has its error, too.
    request.on('error', reject);
    request.once('close', () => reject(closed));
  });
}
