import {
  type EventType,
  type OpenApi,
  toolNameOf,
} from '@animal-store/openapi-mcp';
import type { Database } from '../../database/database.ts';

const words = {
  added: 'One is added to',
  changed: 'One is changed in',
  removed: 'One is removed from',
};
/** What changes call these. */
const actions = { added: 'created', changed: 'changed', removed: 'removed' };
type Happening = keyof typeof words;

/**
 * Events of collections with a trace are their changes; those of other
 * followed ones are additions. Tenants do not wait for each other, so only a
 * trace orders theirs.
 */
export function eventTypesOf(
  { paths }: Pick<OpenApi, 'paths'>,
  { traced, tenanted }: Pick<Database, 'traced' | 'tenanted'>,
) {
  const changes = { name: 'changes', tool: 'list_changes' };
  const ofChanges = [...traced.keys()].flatMap((collection) =>
    Object.entries(actions).map(
      ([one, action]): EventType => ({
        ...wordsOf(collection, one as Happening),
        list: changes,
        time: 'at',
        given: { collection },
        isOf: (item) => item.action === action,
      }),
    ),
  );
  const additions = Object.entries(paths).flatMap(([path, { get }]) => {
    const name = path.slice(1);
    const isOrdered = !traced.has(name) && !tenanted.has(name);
    const offered = get?.responses['200']?.content ?? {};
    const isFollowed = 'text/event-stream' in offered;
    if (!isOrdered || !isFollowed || name === changes.name) return [];
    const tool = toolNameOf(`${get?.operationId}`);
    const list = { name, tool };
    return [{ ...wordsOf(name, 'added'), list, time: 'createdAt' }];
  });
  return [...ofChanges, ...additions];
}

const wordsOf = (collection: string, one: Happening) => ({
  name: `${collection}.${one}`,
  description: `${words[one]} ${collection}.`,
});
