import type { Module } from '#engine/api/module.js';
import { afterAll, beforeAll } from './jest.ts';

type FieldsByType = Record<string, string[]>;

/** What the modules of tests add to types, by the names of their tags. */
const fieldsOfModules: Record<string, FieldsByType> = {
  Checkups: { Pet: ['checkups'], Checkup: ['pet'] },
  Diaries: { Diary: ['remarks'], Remark: ['diary'] },
  Practice: {
    Pet: ['visits', 'tags'],
    Tag: ['pets'],
    Owner: ['visits'],
    Visit: ['pet', 'owner', 'treatments'],
    Treatment: ['visit'],
    PetTag: ['pet', 'tag'],
  },
};

/** Declares the fields of modules for the tests of a file. */
export function fieldsOfModulesForAll(modules: Module[]): void {
  for (const { tag } of modules) fieldsForAll(fieldsOfModules[tag.name] ?? {});
}

/**
 * What `forgetFields` has removed. A module declares its fields once, when the
 * first test file imports it.
 */
let forgotten: any[] = [];

/**
 * The fields that a file adds to types with `@FieldResolver`. Call it before
 * the store opens: another file may have imported the same modules before.
 */
export function fieldsForAll(names: FieldsByType): void {
  beforeAll(() => {
    const { storage, has, typeOf } = storageWith(names);
    const isWanted = (one: any) => has(typeOf(one.target), one.methodName);
    storage.fieldResolvers.push(...forgotten.filter(isWanted));
    forgotten = forgotten.filter((one) => !isWanted(one));
  });
  afterAll(() => forgetFields(names));
}

/**
 * type-graphql keeps declarations for the whole process, and other test files
 * run in it after this one.
 */
export function forgetFields(names: FieldsByType): void {
  const { storage, has, typeOf } = storageWith(names);
  const isForgotten = (one: any) => has(typeOf(one.target), one.methodName);
  forgotten.push(...storage.fieldResolvers.filter(isForgotten));
  storage.fieldResolvers = storage.fieldResolvers.filter(
    (one: any) => !isForgotten(one),
  );
  const isKept = ({ target, name }: { target: unknown; name: string }) =>
    !has(target, name);
  storage.fields = storage.fields.filter(isKept);
  for (const [target, fields] of storage.fieldsCache)
    storage.fieldsCache.set(target, fields.filter(isKept));
  for (const type of storage.objectTypes)
    type.fields = type.fields?.filter(isKept);
}

function storageWith(names: FieldsByType) {
  const { TypeGraphQLMetadataStorage: storage } = globalThis as any;
  const has = (type: unknown, name: string) => {
    const named = storage.objectTypes.find(
      ({ target }: { target: unknown }) => target === type,
    );
    return names[named?.name]?.includes(name) === true;
  };
  const typeOf = (resolver: unknown) =>
    storage.resolverClasses
      .find(({ target }: { target: unknown }) => target === resolver)
      ?.getObjectType?.();
  return { storage, has, typeOf };
}
