import { type FieldCost, listedIn } from '@animal-store/graphql-limits/cost';
import type { EntityName } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { Arg, Args, Mutation, Query } from 'type-graphql';
import type { Static, TArray, TObject, TSchema } from 'typebox';
import type { Call } from '../../call.ts';
import type { Database } from '../../database/database.ts';
import { reportFault } from '../../errors.ts';
import { kindIn, kinds } from '../../validation/kinds.ts';
import { totalCost } from '../../validation/page.ts';
import { type MemberSchema, unwrapped } from '../../validation/rules.ts';
import { type Input, validator } from '../../validation/validator.ts';
import {
  argumentsType,
  inputTypeOf,
  objectTypeOf,
} from '../graphql/members.ts';
import { Idempotent } from '../graphql/types.ts';
import type { Routes } from '../http/routes.ts';
import { type Response, success } from '../rest/documented-responses.ts';
import { resolver } from './resolvers.ts';
import type { Served } from './resource.ts';

type Entities = readonly EntityName[];

/** An operation that is none of a resource, in REST and GraphQL. */
interface Declared<
  In extends TObject = TObject,
  Out extends TObject | TArray<TObject> = TObject | TArray<TObject>,
> {
  /** Its `operationId`, and its field. */
  name: string;
  /** What it does. */
  description: string;
  /** Below `/v1`. */
  path: string;
  /** What clients say: in the query string, or in the body of a `POST`. */
  input: In;
  /** An object with an `$id`, or an array with one and with `maxItems`. */
  output: Out;
  /**
   * The entities of which it creates rows, all or none, once for an
   * `Idempotency-Key`.
   *
   * @default none: the operation only reads
   */
  creates?: Entities;
  /**
   * A module whose scope it needs: `portal`.
   *
   * @default its own one
   */
  scope?: string;
  /** What it may answer else, by status: `failure(...)`. */
  failures?: Record<number, Response>;
}

/**
 * Declares an operation, once for the process. What `serve` returns goes to
 * `resources` of its module.
 *
 * @example
 *   const turnover = operation({
 *     name: 'turnover',
 *     description: 'Sums by month.',
 *     path: '/turnover',
 *     input: Type.Object({ from: moment({ description: 'The first day.' }) }),
 *     output: Type.Array(turnoverSchema, { maxItems: 100 }),
 *   });
 *   // In `open`: resources: [turnover.serve(database, ({ from }, call) => ...)]
 */
export function operation<
  const In extends TObject,
  const Out extends TObject | TArray<TObject>,
  const Creates extends Entities | undefined = undefined,
>(declared: Declared<In, Out> & { creates?: Creates }) {
  type Answer = (input: Input<In>, call: Call) => Promise<Static<Out>>;
  /** Of its transaction, if it creates. */
  type Em = Creates extends Entities ? EntityManager : undefined;
  type Run = (...given: [...Parameters<Answer>, em: Em]) => ReturnType<Answer>;
  const { creates, scope } = declared;
  const Field = rootFieldOf<Answer>(declared);
  return {
    serve(database: Database, run: Run): Partial<Served> {
      const answer: Answer = (input, call) => {
        const work = (em?: EntityManager) => run(input, call, em as Em);
        if (!creates) return work();
        return database.transaction(call, { creates, input }, work);
      };
      return {
        routes: (app) => addRoute(app, declared, answer as never),
        resolvers: [Object.assign(new Field(answer), { scope })],
      };
    },
  };
}

const reading = {
  method: 'GET',
  status: 200,
  place: 'querystring',
  right: 'read',
} as const;
const writing = {
  method: 'POST',
  status: 201,
  place: 'body',
  right: 'write',
} as const;

function addRoute(
  app: Routes,
  declared: Declared,
  run: (input: never, call: Call) => Promise<unknown>,
) {
  const { name, description, path, input, output } = declared;
  const { creates, failures, scope: module } = declared;
  const { method, status, place, right } = creates ? writing : reading;
  const scope = module && (`${module}:${right}` as const);
  const schema = {
    operationId: name,
    summary: description,
    [place]: input,
    response: {
      [status]: success(output, 'The answer.'),
      ...failures,
    },
  };
  app.route({
    method,
    url: path,
    schema,
    config: { isIdempotent: creates !== undefined, ...(scope && { scope }) },
    async handler({ body, query, call }, reply) {
      const given = (body ?? query) as never;
      return reply.code(status).send(await run(given, call));
    },
  });
}

/** The cost of an answer with so many items at most. */
function costOfItems(maxItems: number): FieldCost {
  return ({ args, childComplexity }) =>
    totalCost + listedIn(args) + maxItems * (1 + childComplexity);
}

/** Its field of `Query` or `Mutation`. */
function rootFieldOf<Run extends (input: never, call: Call) => unknown>(
  declared: Declared,
) {
  const { name, description, input, output, creates } = declared;
  const { items, maxItems } = output as MemberSchema;
  const item = (items ?? output) as TObject;
  assertNullable(item, name);
  const type = objectTypeOf(item);
  const complexity = maxItems === undefined ? undefined : costOfItems(maxItems);
  const returned = () => (items ? [type] : type);
  const options = { description, complexity };
  const inputOf = validator(input, { isLenient: true });
  const run = (answer: Run, call: Call, given: object) =>
    answer(inputOf(given) as never, call);
  if (creates) {
    const Input = inputTypeOf(input);
    const decorators = [Mutation(returned, options), Idempotent()];
    return resolver(name, decorators, [Arg('input', () => Input)], run);
  }
  const Given = argumentsType(input);
  const decorator = Query(returned, options);
  return resolver(name, decorator, [Args(() => Given)], run);
}

/** GraphQL would answer an error to JSON that is null. */
function assertNullable(schema: TObject, name: string) {
  const { required = [] } = schema as MemberSchema;
  for (const one of required) {
    const { member, isNullable } = unwrapped(schema.properties[one] as TSchema);
    const isJson = kindIn(member) === kinds.json && !member.anyOf;
    if (isJson && !isNullable)
      reportFault(`${one} of ${name} may be null: write nullable(...).`);
    const inner = (member.items ?? member) as TObject;
    if (inner.properties) assertNullable(inner, name);
  }
}
