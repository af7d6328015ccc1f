import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

export interface ReceivedSpan {
  name: string;
  /** 1 INTERNAL, 2 SERVER, 3 CLIENT. */
  kind: number;
  traceId: string;
  spanId: string;
  /** '' for the first span of a trace. */
  parentSpanId: string;
  attributes: Record<string, unknown>;
  links: Array<{ traceId: string; spanId: string }>;
  /** 2 is an error. */
  status: number;
  resource: Record<string, unknown>;
}

const accept = (response: ServerResponse) =>
  void response
    .writeHead(200, { 'content-type': 'application/x-protobuf' })
    .end();

export type OtlpReceiver = Awaited<ReturnType<typeof startReceiver>>;

/**
 * Starts a collector for OTLP over HTTP with protobuf, which the exporter sends
 * by default.
 */
export async function startReceiver() {
  const server = createServer(async (request, response) => {
    const { url, headers } = request;
    const body = await buffer(request);
    receiver.requests.push({ url, headers });
    receiver.text += body.toString('latin1');
    receiver.spans.push(...spansIn(body));
    receiver.answer(response);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const receiver = {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans: [] as ReceivedSpan[],
    requests: [] as Array<Pick<IncomingMessage, 'url' | 'headers'>>,
    /** All bodies, not decoded. */
    text: '',
    /** Answers a request. */
    answer: accept,
    close: () => server.close().closeAllConnections(),
  };
  return receiver;
}

interface Field {
  number: number;
  /** The value of a text, of bytes or of a nested message. */
  bytes: Buffer;
  /** The value of a number. */
  value: number;
}

/**
 * The fields of a protobuf message
 * (https://protobuf.dev/programming-guides/encoding).
 */
function fieldsOf(message: Buffer): Field[] {
  const fields: Field[] = [];
  let at = 0;
  const varint = () => {
    for (let value = 0, unit = 1; ; unit *= 128) {
      const byte = message[at++] as number;
      value += (byte & 127) * unit;
      if (byte < 128) return value;
    }
  };
  while (at < message.length) {
    const tag = varint();
    const type = tag & 7;
    const value = type === 0 ? varint() : 0;
    const length = type === 2 ? varint() : ({ 1: 8, 5: 4 }[type] ?? 0);
    fields.push({
      number: tag >> 3,
      bytes: message.subarray(at, at + length),
      value,
    });
    at += length;
  }
  return fields;
}

/**
 * The spans of a message as opentelemetry/proto/trace/v1/trace.proto defines
 * it.
 */
function spansIn(message: Buffer): ReceivedSpan[] {
  const all = (within: Buffer, number: number) =>
    fieldsOf(within).filter((field) => field.number === number);
  return all(message, 1).flatMap(({ bytes: ofResource }) => {
    const resource = attributesOf(
      all(ofResource, 1).flatMap(({ bytes }) => all(bytes, 1)),
    );
    const scopes = all(ofResource, 2);
    return scopes
      .flatMap(({ bytes }) => all(bytes, 2))
      .map(({ bytes }) => ({ ...spanOf(bytes), resource }));
  });
}

function spanOf(message: Buffer): Omit<ReceivedSpan, 'resource'> {
  const fields = fieldsOf(message);
  const all = (number: number) =>
    fields.filter((field) => field.number === number);
  const bytes = (number: number) => all(number)[0]?.bytes ?? Buffer.alloc(0);
  return {
    name: bytes(5).toString(),
    kind: all(6)[0]?.value ?? 0,
    traceId: bytes(1).toString('hex'),
    spanId: bytes(2).toString('hex'),
    parentSpanId: bytes(4).toString('hex'),
    attributes: attributesOf(all(9)),
    links: all(13).map(({ bytes: link }) => {
      const [traceId, spanId] = fieldsOf(link).map(({ bytes }) =>
        bytes.toString('hex'),
      ) as [string, string];
      return { traceId, spanId };
    }),
    status: fieldsOf(bytes(15)).find(({ number }) => number === 3)?.value ?? 0,
  };
}

function attributesOf(pairs: Field[]): Record<string, unknown> {
  return Object.fromEntries(
    pairs.map(({ bytes }) => {
      const [key, value] = fieldsOf(bytes);
      const [of] = fieldsOf(value?.bytes ?? Buffer.alloc(0));
      return [
        key?.bytes.toString() ?? '',
        of?.number === 1 ? of.bytes.toString() : of?.value,
      ];
    }),
  );
}
