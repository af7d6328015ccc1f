import { defineEntity, type EntityManager, type InferEntity, LockMode, p } from '@mikro-orm/core';
import { Type } from 'typebox';
import { type Deadline, noDeadline } from '../../../src/call-context.ts';
import type { Database } from '../../../src/database/database.ts';
import { sqlState, unavailable } from '../../../src/database/postgres-errors.ts';
import { StoreError } from '../../../src/errors.ts';
import type { IdempotencyClaim } from '../../../src/records/insertions.ts';
import { Records, type Row } from '../../../src/records/records.ts';
import { enumSchema, type Input, int64Schema, textSchema, use, withDefault } from '../../../src/validation/check.ts';
import type { Int64 } from '../../../src/validation/int64.ts';
import { type Page, pageQueryMembers } from '../../../src/validation/page.ts';

const VisitStatus = { planned: 'planned', done: 'done' } as const;

const schema = defineEntity({
  name: 'Visit',
  tableName: 'visit',
  properties: {
    id: p.bigint('bigint').primary().autoincrement(),
    petId: p.bigint('bigint'),
    reason: p.text(),
    status: p.enum(Object.values(VisitStatus)),
  },
  indexes: [{ properties: ['petId', 'id'] }, { properties: ['status', 'id'] }],
});
export class VisitEntity extends schema.class {}
schema.setClass(VisitEntity);
export type Visit = Row<InferEntity<typeof schema>>;

const petId = int64Schema({ description: 'The animal.' });
const status = enumSchema('VisitStatus', VisitStatus, 'Whether the visit has taken place.');
const reason = textSchema({ description: 'Why the animal comes.' });

export const newVisitSchema = Type.Object(
  { petId, reason, status: withDefault(use(status, '`planned` when omitted.'), VisitStatus.planned) },
  { $id: 'NewVisit' },
);
export const visitChangeSchema = Type.Object(
  { reason: Type.Optional(reason), status: Type.Optional(use(status, 'The new status.')) },
  { $id: 'VisitChange' },
);
export const visitQuerySchema = Type.Object({
  petId: Type.Optional(petId),
  status: Type.Optional(use(status, 'Only visits with this status.')),
  ...pageQueryMembers('visit'),
});
export const visitSchema = Type.Object(
  { id: int64Schema({ description: 'Its identifier.' }), petId, reason: Type.String(), status },
  { $id: 'Visit' },
);
export type NewVisit = Input<typeof newVisitSchema>;
export type VisitChange = Input<typeof visitChangeSchema>;

/** Visits: they refer to pets, have two filters, and can be changed and removed. */
export class VisitService {
  readonly #database: Database;
  readonly #visits: Records<Visit, NewVisit>;

  constructor(database: Database) {
    this.#database = database;
    this.#visits = new Records(database, VisitEntity);
  }

  /** @throws StoreError BAD_USER_INPUT when there is no such pet */
  async create(visit: NewVisit, deadline?: Deadline, claim?: IdempotencyClaim): Promise<Visit> {
    return this.#visits.insert(visit, deadline, claim).catch((error) => {
      // A foreign key's violation (SQLSTATE 23503): only this row of its batch has failed.
      if (sqlState(error) !== '23503') throw error;
      throw new StoreError('BAD_USER_INPUT', `There is no animal with the id ${visit.petId}.`);
    });
  }

  async list(query: Input<typeof visitQuerySchema>, deadline: Deadline = noDeadline): Promise<Page<Visit>> {
    const { petId, status, limit, after } = query;
    const where = {
      ...(petId !== undefined && { petId: BigInt(petId) }),
      ...(status !== undefined && { status }),
      ...(after !== undefined && { id: { $gt: BigInt(after) } }),
    };
    const found = await this.#transaction((em) =>
      em.find(VisitEntity, where, { orderBy: { id: 'asc' }, limit: limit + 1 }),
    );
    const items = found.slice(0, limit).map(visitOf);
    // The quota is charged for the items that are counted.
    deadline.count?.(items.length);
    return { items, hasNext: found.length > limit };
  }

  /** @throws StoreError NOT_FOUND */
  change(id: Int64 | undefined, change: VisitChange): Promise<Visit> {
    return this.#transaction(async (em) => {
      // Concurrent changes run one after the other.
      const visit = await em.findOne(VisitEntity, { id: idOf(id) }, { lockMode: LockMode.PESSIMISTIC_WRITE });
      if (!visit) throw noVisit();
      return visitOf(Object.assign(visit, change));
    });
  }

  /** @throws StoreError NOT_FOUND */
  async remove(id: Int64 | undefined): Promise<void> {
    const removed = await this.#transaction((em) => em.nativeDelete(VisitEntity, { id: idOf(id) }));
    if (removed === 0) throw noVisit();
  }

  /** A database that cannot be reached is 503, as with the records. */
  #transaction<Result>(work: (em: EntityManager) => Promise<Result>): Promise<Result> {
    const em = this.#database.orm.em.fork() as EntityManager;
    return em.transactional(work).catch((error) => {
      throw unavailable(error) ?? error;
    });
  }
}

function visitOf({ id, petId, reason, status }: VisitEntity): Visit {
  return { id, petId, reason, status } as Visit;
}

/** @param id undefined when the client's id is not an int64 */
function idOf(id: Int64 | undefined): bigint {
  if (id === undefined) throw noVisit();
  return BigInt(id);
}

function noVisit(): StoreError {
  return new StoreError('NOT_FOUND', 'There is no visit with this id.');
}
