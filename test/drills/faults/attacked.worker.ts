import { request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';

/**
 * The process of attackers: reads its job from standard input, and writes the
 * number of each answer to standard output.
 */

const {
  origin,
  key,
  seconds,
}: { origin: string; key: string; seconds: number } = JSON.parse(
  await text(process.stdin),
);
const until = performance.now() + seconds * 1000;
const answers: Record<string, number> = {};
const copies = Array.from({ length: 48 }, (_, at) => `c${at}: name`).join(' ');
const authorization = `Bearer ${key}`;
const json = { authorization, 'content-type': 'application/json' };
const documentOf = (query: string, variables = {}) =>
  JSON.stringify({ query, variables });
const numbers = (text: string) => `[1e1${text.repeat(999_900 / text.length)}]`;
const codings = ['gzip', 'br', 'zstd', 'identity'];

// Each attack has its rate per second.
const attacks = [
  repeat('followers', 0.2, (turn) =>
    hold(
      100,
      (at) =>
        follower(
          at,
          turn % 2 === 0
            ? 'text/event-stream'
            : 'multipart/mixed;subscriptionSpec=1.0',
        ),
      4900,
    ),
  ),
  repeat('entities', 0.5, (turn) => {
    const query = `query($r: [_Any!]!) { _entities(representations: $r) { ... on Pet { a: name name ${copies} } } }`;
    const ids = Array.from(
      { length: turn % 2 === 0 ? 5900 : 100 },
      (_, at) => ({
        __typename: 'Pet',
        id: 1 + (at % 100),
      }),
    );
    return send('POST', '/graphql', json, documentOf(query, { r: ids }));
  }),
  repeat('aliases', 1, () =>
    send(
      'POST',
      '/graphql',
      json,
      documentOf(`{ pets(limit: 100) { a: name name ${copies} } }`),
    ),
  ),
  repeat('files', 20, (turn) => {
    const file = turn % 8 < 4 ? 'swagger-ui-bundle.js' : 'swagger-ui.css';
    return send('GET', `/docs/static/${file}`, {
      'accept-encoding': codings[turn % 4] as string,
    });
  }),
  repeat('headers', 20, () =>
    send('GET', '/graphql', {
      accept: 'multipart/mixed'.repeat(500) + ';'.repeat(8000),
    }),
  ),
  repeat('pipelines', 0.5, (turn) => hold(20, () => pipelined(turn), 1900)),
  repeat('exponents', 1, (turn) =>
    send('POST', '/graphql', json, numbers(turn % 2 === 0 ? ',1e1' : ',[]')),
  ),
];
await Promise.all(attacks);
process.stdout.write(JSON.stringify(answers), () => process.exit());

/**
 * Repeats an attack at a rate per second, and does not wait for its answers.
 */
async function repeat(
  name: string,
  perSecond: number,
  send: (turn: number) => Promise<string>,
): Promise<void> {
  const sent: Array<Promise<void>> = [];
  for (let turn = 0; performance.now() < until; turn += 1) {
    const count = (outcome: string) => {
      answers[`${name} ${outcome}`] = (answers[`${name} ${outcome}`] ?? 0) + 1;
    };
    sent.push(send(turn).then(count));
    await pause(1000 / perSecond);
  }
  await Promise.all(sent);
}

/** @returns the status, or `broken` */
function send(
  method: string,
  path: string,
  headers: Record<string, string>,
  body?: string,
): Promise<string> {
  return new Promise((done) => {
    const outgoing = request(
      origin + path,
      { method, headers, agent: false },
      (incoming) => {
        incoming
          .resume()
          .on('close', () =>
            done(incoming.complete ? `${incoming.statusCode}` : 'broken'),
          );
      },
    );
    outgoing.on('error', () => done('broken')).end(body);
  });
}

/** Opens connections that send a text and read nothing, for a time (ms). */
async function hold(
  count: number,
  text: (at: number) => string,
  milliseconds: number,
): Promise<string> {
  const sockets = Array.from({ length: count }, (_, at) => {
    const socket = connect(Number(new URL(origin).port), '127.0.0.1').on(
      'error',
      () => undefined,
    );
    socket.pause().write(text(at));
    return socket;
  });
  await pause(milliseconds);
  for (const socket of sockets) socket.destroy();
  return 'held';
}

function follower(at: number, accept: string): string {
  const query = `subscription { petAdded(after: "0") { b${at}: name name ${copies} } }`;
  const body = documentOf(query);
  const head = `Host: a\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\nAccept: ${accept}`;
  return `POST /graphql HTTP/1.1\r\n${head}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

function pipelined(turn: number): string {
  const heads = ['/docs/static/swagger-ui.css', '/', '/v1/pets'].map(
    (path) => `GET ${path} HTTP/1.1\r\nHost: a\r\n`,
  );
  const request = `${[...heads, 'GET / HTTP/1.1\r\n'][turn % 4]}Accept-Encoding: br\r\n\r\n`;
  return request.repeat(65_536 / request.length);
}
