import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

export interface ReceivedSpan {
  name: string;
  /** 1 INTERNAL, 2 SERVER, 3 CLIENT. */
  kind: number;
  traceId: string;
  spanId: string;
  /** '' for the first of a trace. */
  parentSpanId: string;
  attributes: Record<string, unknown>;
  links: Array<{ traceId: string; spanId: string }>;
  /** 2 is an error. */
  status: number;
  droppedLinks: number;
  /** Nanoseconds in Unix time. */
  start: bigint;
  end: bigint;
  resource: Record<string, unknown>;
}

export type Answer = (response: ServerResponse) => void;
const accept: Answer = (response) => void response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end();

/** A collector: takes OTLP over HTTP, as protobuf, as the exporter sends it by default. */
export class OtlpReceiver {
  readonly spans: ReceivedSpan[] = [];
  readonly requests: Array<Pick<IncomingMessage, 'url' | 'headers'>> = [];
  /** All bodies, as they came. */
  text = '';
  /** Whatever it does with a request. */
  answer: Answer = accept;
  readonly #server: Server;

  private constructor() {
    this.#server = createServer(async (request, response) => {
      const { url, headers } = request;
      const body = await buffer(request);
      this.requests.push({ url, headers });
      this.text += body.toString('latin1');
      this.spans.push(...spansIn(body));
      this.answer(response);
    });
  }

  static async start(): Promise<OtlpReceiver> {
    const receiver = new OtlpReceiver();
    await once(receiver.#server.listen(0, '127.0.0.1'), 'listening');
    return receiver;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((done) => this.#server.close(done));
  }
}

type Field = { number: number; bytes: Buffer; value: bigint };

/** The fields of a protobuf message (https://protobuf.dev/programming-guides/encoding). */
function fieldsOf(message: Buffer): Field[] {
  const fields: Field[] = [];
  let at = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[at++] as number;
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  while (at < message.length) {
    const tag = Number(varint());
    const [number, type] = [tag >> 3, tag & 7];
    if (type === 0) fields.push({ number, bytes: Buffer.alloc(0), value: varint() });
    else {
      const length = type === 2 ? Number(varint()) : type === 1 ? 8 : 4;
      const bytes = message.subarray(at, at + length);
      at += length;
      fields.push({ number, bytes, value: length === 8 && type === 1 ? bytes.readBigUInt64LE() : 0n });
    }
  }
  return fields;
}

/** Of opentelemetry/proto/trace/v1/trace.proto. */
function spansIn(message: Buffer): ReceivedSpan[] {
  const all = (within: Buffer, number: number) => fieldsOf(within).filter((field) => field.number === number);
  return all(message, 1).flatMap(({ bytes: ofResource }) => {
    const resource = attributesOf(all(ofResource, 1).flatMap(({ bytes }) => all(bytes, 1)));
    const scopes = all(ofResource, 2);
    return scopes.flatMap(({ bytes }) => all(bytes, 2)).map(({ bytes }) => ({ ...spanOf(bytes), resource }));
  });
}

function spanOf(message: Buffer): Omit<ReceivedSpan, 'resource'> {
  const fields = fieldsOf(message);
  const all = (number: number) => fields.filter((field) => field.number === number);
  const bytes = (number: number) => all(number)[0]?.bytes ?? Buffer.alloc(0);
  const value = (number: number) => all(number)[0]?.value ?? 0n;
  return {
    name: bytes(5).toString(),
    kind: Number(value(6)),
    traceId: bytes(1).toString('hex'),
    spanId: bytes(2).toString('hex'),
    parentSpanId: bytes(4).toString('hex'),
    attributes: attributesOf(all(9)),
    links: all(13).map(({ bytes: link }) => {
      const [traceId, spanId] = fieldsOf(link).map(({ bytes }) => bytes.toString('hex')) as [string, string];
      return { traceId, spanId };
    }),
    droppedLinks: Number(value(14)),
    status: Number(fieldsOf(bytes(15)).find(({ number }) => number === 3)?.value ?? 0n),
    start: value(7),
    end: value(8),
  };
}

function attributesOf(pairs: Field[]): Record<string, unknown> {
  return Object.fromEntries(
    pairs.map(({ bytes }) => {
      const [key, value] = fieldsOf(bytes);
      const [of] = fieldsOf(value?.bytes ?? Buffer.alloc(0));
      return [key?.bytes.toString() ?? '', of?.number === 1 ? of.bytes.toString() : Number(of?.value)];
    }),
  );
}
