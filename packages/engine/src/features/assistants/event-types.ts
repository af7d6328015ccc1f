import {
  type EventType,
  type OpenApi,
  toolNameOf,
} from '@animal-store/openapi-mcp';
import type { Database } from '../../database/database.ts';
import { eventIn, keptIn } from '../../records/trace.ts';

const words = {
  added: 'added to',
  changed: 'changed in',
  removed: 'removed from',
};

/**
 * Events of collections with a trace are their changes; those of other
 * followed ones are additions. Tenants do not wait for each other, so only a
 * trace orders theirs.
 */
export function eventTypesOf(
  { paths }: Pick<OpenApi, 'paths'>,
  database: Pick<Database, 'traced' | 'tenanted' | 'rows' | 'inTurn'>,
): EventType[] {
  const { traced, tenanted } = database;
  const changes = { name: 'changes', tool: 'list_changes' };
  const kept: EventType['kept'] = ({ call }) => keptIn(database, call);
  const ofChanges = [...traced.keys()].flatMap((collection) =>
    Object.keys(words).map((happening) => {
      const named = namedBy(collection, happening as 'added');
      const isOf = (item: object) => eventIn({ ...item }) === named.name;
      const given = { collection };
      return { ...named, list: changes, time: 'at', given, isOf, kept };
    }),
  );
  const additions = Object.entries(paths).flatMap(([path, { get }]) => {
    const name = path.slice(1);
    const isOrdered = !traced.has(name) && !tenanted.has(name);
    const offered = get?.responses['200']?.content ?? {};
    const isFollowed = 'text/event-stream' in offered;
    if (!isOrdered || !isFollowed || name === changes.name) return [];
    const list = { name, tool: toolNameOf(`${get?.operationId}`) };
    return [{ ...namedBy(name, 'added'), list, time: 'createdAt' }];
  });
  return [...ofChanges, ...additions];
}

const namedBy = (collection: string, happening: keyof typeof words) => ({
  name: `${collection}.${happening}`,
  description: `One is ${words[happening]} ${collection}.`,
});
