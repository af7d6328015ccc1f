import {
  type DocumentNode,
  GraphQLError,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  type OperationDefinitionNode,
  OperationTypeNode,
} from 'graphql';
import { createParameterDecorator, Extensions } from 'type-graphql';
import { claimOf, notRepeatable } from '../../access/idempotency/idempotency-key.ts';
import type { IdempotencyClaim } from '../../storage/records/insertions.ts';
import type { GraphQLContext } from './request.ts';
import { fragmentsOf, rootFieldsOf } from './selections.ts';

export type { IdempotencyClaim };

interface RepeatableField {
  isRepeatable?: boolean;
}

/**
 * The parameter of a mutation that takes `Idempotency-Key`: the client's name for what the field does, undefined when
 * it has none. The resolver passes it to the service.
 */
export function Repeatable(): ParameterDecorator {
  const inject = createParameterDecorator<GraphQLContext>(({ context, info }): IdempotencyClaim | undefined =>
    claimOf(context.request, info.fieldName, placeOf(info)),
  );
  return (prototype, name, index) => {
    Extensions({ isRepeatable: true } satisfies RepeatableField)(prototype, name as string);
    inject(prototype, name as string, index);
  };
}

/** Of several fields of this name each has its own; one alone is the same as a REST request. */
function placeOf({ operation, fragments, fieldName, path }: GraphQLResolveInfo): string {
  const { byKey } = rootFieldsOf(operation, (name) => fragments[name]);
  const isOneOfSeveral = [...byKey.values()].filter((name) => name === fieldName).length > 1;
  return isOneOfSeveral ? `${path.key}` : '';
}

/**
 * Refuses a key for mutations that would ignore it: a client that sends one relies on it.
 *
 * @throws GraphQLError BAD_USER_INPUT
 */
export function assertRepeatable(schema: GraphQLSchema, document: DocumentNode, node: OperationDefinitionNode): void {
  if (node.operation !== OperationTypeNode.MUTATION) return;
  const fields = schema.getMutationType()?.getFields() ?? {};
  const { names } = rootFieldsOf(node, fragmentsOf(document));
  for (const name of names) {
    const { isRepeatable } = (fields[name]?.extensions ?? { isRepeatable: true }) as RepeatableField;
    if (isRepeatable) continue;
    const originalError = notRepeatable();
    throw new GraphQLError(originalError.message, {
      nodes: node,
      originalError,
      extensions: { http: { status: 400 } },
    });
  }
}
