import type { FastifyRequest } from 'fastify';
import { type TObject, Type } from 'typebox';
import type { Call } from '../../call.ts';
import { StoreError } from '../../errors.ts';
import { createInTurn } from '../../records/create-in-turn.ts';
import { isSeparate } from '../../validation/rules.ts';
import { toLoggedFailure } from '../http/failures.ts';
import { ErrorSchema } from '../rest/documented-responses.ts';
import type { ResourceService } from './definition.ts';

/** Of a request for several creations. */
export const maxItems = 100;

/** The body of several creations; those that are invalid are read as errors. */
export function severalOf(input: TObject, types: string) {
  const inputs = Type.Array(input, {
    [isSeparate]: true,
    minItems: 1,
    maxItems,
    description: 'Each is created or refused by itself.',
  });
  return Type.Object(
    { inputs },
    { $id: `New${types}`, description: 'Inputs of several creations.' },
  );
}

/** With the members that an error may have beside these. */
const error = Type.Unsafe({ allOf: [ErrorSchema], additionalProperties: true });

/** The answer to several creations. */
export function outcomesOf(item: TObject, type: string) {
  const outcome = Type.Object(
    { item: Type.Optional(item), error: Type.Optional(error) },
    { $id: `${type}Creation`, description: 'What has become of an input.' },
  );
  return Type.Array(outcome, {
    $id: `${type}Creations`,
    description: 'An item or an error for each input, in their order.',
    maxItems,
  });
}

/**
 * Creates each input, or refuses it by itself; their ids ascend in this order.
 *
 * @param inputs those that are invalid as errors
 * @throws the failure of the service when none is created, unless only some
 *   inputs may be sent again
 */
export async function createEach(
  service: ResourceService,
  inputs: readonly never[],
  call: Call,
): Promise<object[]> {
  const outcomes = service.createMany
    ? await service.createMany(inputs, call)
    : await createInTurn(service, inputs, call);
  const isNoneCreated = outcomes.every((one) => one instanceof Error);
  const failures = outcomes.filter(isFailure) as StoreError[];
  const waits = new Set(failures.map(({ retryAfter }) => retryAfter));
  if (isNoneCreated && waits.size === 1) throw failures[0];
  return outcomes;
}

/** True when the service has failed, false when it refuses an input. */
function isFailure(outcome: object) {
  const isRefusal = outcome instanceof StoreError && outcome.status < 500;
  return outcome instanceof Error && !isRefusal;
}

export function toOutcome(outcome: object, request: FastifyRequest) {
  if (!(outcome instanceof Error)) return { item: outcome };
  const failure = toLoggedFailure(outcome, request);
  return { error: { ...failure.toBody(), retryAfter: failure.retryAfter } };
}
