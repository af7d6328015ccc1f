import { afterAll, beforeAll } from './jest.ts';

/** What `forgetFields` has removed. A module declares its fields once, when the first test file imports it. */
const forgotten: Array<{ methodName: string }> = [];

/**
 * The fields that the modules of a file add to types of other modules. Call it before the store opens: another file may
 * have imported the same modules before.
 */
export function fieldsForAll(names: string[]): void {
  beforeAll(() => {
    const { TypeGraphQLMetadataStorage: storage } = globalThis as any;
    for (const one of forgotten.filter(({ methodName }) => names.includes(methodName))) {
      storage.fieldResolvers.push(...forgotten.splice(forgotten.indexOf(one), 1));
    }
  });
  afterAll(() => forgetFields(names));
}

/** type-graphql keeps declarations for the whole process, and other test files run in it after this one. */
export function forgetFields(names: string[]): void {
  const { TypeGraphQLMetadataStorage: storage } = globalThis as any;
  const isKept = ({ name, methodName }: { name: string; methodName?: string }) => !names.includes(methodName ?? name);
  forgotten.push(...storage.fieldResolvers.filter((one: { name: string }) => !isKept(one)));
  storage.fieldResolvers = storage.fieldResolvers.filter(isKept);
  storage.fields = storage.fields.filter(isKept);
  for (const [target, fields] of storage.fieldsCache) storage.fieldsCache.set(target, fields.filter(isKept));
  for (const type of storage.objectTypes) type.fields = type.fields?.filter(isKept);
}
