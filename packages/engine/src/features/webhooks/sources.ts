import type { Context } from '../../api/module.ts';
import type { Collection } from '../../api/resources/collection.ts';
import type { Call } from '../../call.ts';
import { badInput } from '../../errors.ts';
import { forbidden, hasScope, type Scope } from '../../scopes.ts';
import { validator } from '../../validation/validator.ts';

/** A collection whose ids are the positions of events. */
export interface Source extends Pick<Collection, 'name' | 'item' | 'service'> {
  readonly filter: object;
  typeOf(item: Record<string, unknown>): string;
}

/** The filters of a host, which are of JSON. */
function queryOf({ query }: Pick<Collection, 'query'>, filters: object) {
  if (Object.keys(filters).length === 0) return {};
  if (!query) throw badInput('Its endpoints take no arguments.');
  return validator(query, { isLenient: true })(filters);
}

/** What events tell of: changes, or what is added to one collection. */
export class Sources {
  constructor(
    private readonly context: Pick<Context, 'database' | 'collections'>,
  ) {}

  /**
   * @param types of events with positions in one order
   * @param filters of their list
   * @throws StoreError BAD_USER_INPUT, FORBIDDEN
   */
  of(types: readonly string[], call: Call, filters = {}): Source {
    const { caller } = call;
    const { collections, database } = this.context;
    const names = types.map((type) => type.replace(/\.\w+$/, ''));
    const [collection = ''] = names;
    const isTraced = names.every((name) => database.traced.has(name));
    const isAlone = `${types}` === `${collection}.added`;
    // Tenants do not wait for each other, so only live lists see an order.
    const isOrdered = isAlone && !database.tenanted.has(collection);
    const wanted = isTraced ? 'changes' : collection;
    const source = collections().find(({ name }) => name === wanted);
    if (!source || !(isTraced || (isOrdered && source.isFollowed)))
      throw badInput(
        'types must be of collections with a trace, or the added of one that is followed and has no tenants.',
      );
    const scope: Scope = `${source.module}:read`;
    if (!hasScope(caller, scope)) throw forbidden(scope, caller);
    const given = queryOf(source, filters);
    const isOfOne = isTraced && names.every((name) => name === collection);
    const filter = isOfOne ? { ...given, collection } : given;
    const typeOf = (item: Record<string, unknown>) => {
      const trace = database.traced.get(`${item.collection}`);
      return isTraced
        ? `${item.collection}.${trace?.eventFor(item, call)}`
        : `${types}`;
    };
    return { ...source, filter, typeOf };
  }
}
