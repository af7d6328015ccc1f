import { CriticalityLevel, diff } from '@graphql-inspector/core';
import { buildSchema } from 'graphql';

/** What breaks clients between two GraphQL schemas, by GraphQL Inspector. @returns one sentence per breaking change */
export async function breakingGraphQLChanges(before: string, after: string): Promise<string[]> {
  const changes = await diff(buildSchema(before), buildSchema(after));
  return changes.filter(isBreaking).map(({ message }) => message.replaceAll("'", '`'));
}

type Change = Awaited<ReturnType<typeof diff>>[number];

/** A changed default changes what an old document means; Inspector calls it dangerous only. */
function isBreaking({ criticality: { level }, type }: Change): boolean {
  return level === CriticalityLevel.Breaking || /DEFAULT(?:_VALUE)?_CHANGED$/.test(type);
}
