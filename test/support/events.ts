import {
  type ClientRequest,
  type IncomingHttpHeaders,
  request,
} from 'node:http';
import { print } from 'graphql';
import {
  PetAddedDocument,
  type PetAddedSubscriptionVariables,
} from './generated/graphql.ts';
import { fromJson, toJson } from './http.ts';
import { afterEach, beforeEach, expect } from './jest.ts';
import { eventually } from './process.ts';
import type { Store } from './store.ts';

/** A server-sent event, parsed as WHATWG HTML (section 9.2.6) describes. */
export interface SeenEvent {
  event: string;
  id: string | undefined;
  data: any;
}

/** An open stream of events. */
export interface Stream {
  status: number;
  headers: IncomingHttpHeaders;
  /** The events received so far. */
  events: SeenEvent[];
  /** The last id, also of a block without an event. */
  lastEventId: string | undefined;
  comments: number;
  text: string;
  /**
   * `whole` when the response ended, `cut` when the connection broke before.
   */
  ended: Promise<'whole' | 'cut'>;
  outgoing: ClientRequest;
  /** Waits until this many events have been received. */
  until(count: number): Promise<SeenEvent[]>;
  close(): void;
}

export interface StreamRequest {
  method?: string;
  path?: string;
  body?: unknown;
  key?: string;
  headers?: Record<string, string>;
}

type Client = Pick<Store, 'origin' | 'key'>;

/**
 * Opens a stream of events. @returns when the head of the response has arrived
 */
export function openStream(
  store: Client,
  { method = 'POST', path = '/graphql', body, key, headers }: StreamRequest,
) {
  return new Promise<Stream>((resolve, reject) => {
    const all = {
      accept: 'text/event-stream',
      authorization: `Bearer ${key ?? store.key}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    };
    const outgoing = request(
      store.origin + path,
      { method, headers: all, agent: false },
      (incoming) => {
        const stream: Stream = {
          status: incoming.statusCode ?? 0,
          headers: incoming.headers,
          events: [],
          lastEventId: undefined,
          comments: 0,
          text: '',
          ended: new Promise((done) => {
            incoming.on('close', () =>
              done(incoming.complete ? 'whole' : 'cut'),
            );
          }),
          outgoing,
          async until(count) {
            await eventually(async () => stream.events.length >= count);
            return stream.events;
          },
          close: () => outgoing.destroy(),
        };
        let read = 0;
        incoming.setEncoding('utf8').on('data', (text: string) => {
          stream.text += text;
          for (
            let end = stream.text.indexOf('\n\n', read);
            end >= 0;
            end = stream.text.indexOf('\n\n', read)
          ) {
            take(stream, stream.text.slice(read, end));
            read = end + 2;
          }
        });
        incoming.on('error', () => undefined);
        resolve(stream);
      },
    );
    outgoing.on('error', reject);
    outgoing.end(
      body === undefined
        ? undefined
        : typeof body === 'string'
          ? body
          : toJson(body),
    );
  });
}

function take(stream: Stream, block: string): void {
  const fields = new Map<string, string>();
  for (const line of block.split('\n')) {
    const [, name = '', value = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
    if (name === '') stream.comments += 1;
    else fields.set(name, value);
  }
  stream.lastEventId = fields.get('id') ?? stream.lastEventId;
  const data = fields.get('data');
  const event = fields.get('event') ?? (data && 'message');
  if (event === undefined) return;
  stream.events.push({
    event,
    id: fields.get('id'),
    data: data ? fromJson(data) : data,
  });
}

/** Subscribes to the animals that are added. */
export function follow(
  store: Client,
  variables: PetAddedSubscriptionVariables = {},
  more: Omit<StreamRequest, 'body'> = {},
): Promise<Stream> {
  return openStream(store, {
    ...more,
    body: { query: print(PetAddedDocument), variables },
  });
}

/** Follows the list of animals through REST. */
function followList(
  store: Client,
  variables: PetAddedSubscriptionVariables = {},
  more: Omit<StreamRequest, 'body'> = {},
): Promise<Stream> {
  const query = Object.entries(variables).map(
    ([name, value]) => `${name}=${value}`,
  );
  return openStream(store, {
    method: 'GET',
    path: `/v1/pets?${query.join('&')}`,
    ...more,
  });
}

interface Failure {
  code: string;
  message: string;
  status: number;
}

/**
 * Empties the store before each test of a file, and closes the test's streams
 * after it.
 *
 * @returns a function that registers a stream of the test
 */
export function streamsForEach(store: Store) {
  const open: Stream[] = [];
  beforeEach(() => store.empty());
  afterEach(async () => {
    for (const stream of open.splice(0)) stream.close();
    // Before the animals are deleted: a position in an empty store is before
    // every animal that was ever added.
    await eventually(async () => store.app.subscriptions.count === 0);
  });
  return async (stream: Promise<Stream>) => {
    open.push(await stream);
    return stream;
  };
}

/** The live list in both APIs. */
export interface LiveApi {
  api: 'GraphQL' | 'REST';
  follow: typeof follow;
  /** The event of an animal, and those of a failure that ends the stream. */
  petEvent(pet: {
    id: number | bigint;
    categoryId: number | bigint;
  }): SeenEvent;
  end(failure: Failure): SeenEvent[];
  /** The failure of a stream that was not opened. */
  failureIn(stream: Stream): Failure;
}

export const liveApis: LiveApi[] = [
  {
    api: 'GraphQL',
    follow,
    petEvent(pet) {
      const { id, categoryId } = pet;
      return {
        event: 'next',
        id: `${id}`,
        data: {
          data: {
            petAdded: { ...pet, id: `${id}`, categoryId: `${categoryId}` },
          },
        },
      };
    },
    end: ({ message, ...extensions }) => [
      {
        event: 'next',
        id: undefined,
        data: {
          errors: [
            { message, extensions: expect.objectContaining(extensions) },
          ],
        },
      },
      { event: 'complete', id: undefined, data: '' },
    ],
    failureIn({ text }) {
      const { message, extensions } = JSON.parse(text).errors[0];
      return { message, code: extensions.code, status: extensions.status };
    },
  },
  {
    api: 'REST',
    follow: followList,
    petEvent: (pet) => ({ event: 'message', id: `${pet.id}`, data: pet }),
    end: (failure) => [{ event: 'error', id: undefined, data: failure }],
    failureIn: ({ text }) => JSON.parse(text),
  },
];

/** One member of each animal that a stream has delivered. */
export function seen(
  stream: Pick<Stream, 'events'>,
  member = 'name',
): unknown[] {
  return stream.events.flatMap(
    ({ data }) => data?.data?.petAdded?.[member] ?? data?.[member] ?? [],
  );
}
