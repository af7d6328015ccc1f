/**
 * Removes fields that `@FieldResolver` has added to types. type-graphql keeps declarations for the whole process, and
 * other test files run in it after this one.
 */
export function forgetFields(namesByType: Record<string, string[]>): void {
  const { TypeGraphQLMetadataStorage: storage } = globalThis as any;
  const has = (type: unknown, name: string) => {
    const named = storage.objectTypes.find(({ target }: { target: unknown }) => target === type);
    return namesByType[named?.name]?.includes(name);
  };
  const typeOf = (resolver: unknown) =>
    storage.resolverClasses.find(({ target }: { target: unknown }) => target === resolver)?.getObjectType?.();
  storage.fieldResolvers = storage.fieldResolvers.filter((one: any) => !has(typeOf(one.target), one.methodName));
  const isKept = ({ target, name }: { target: unknown; name: string }) => !has(target, name);
  storage.fields = storage.fields.filter(isKept);
  for (const [target, fields] of storage.fieldsCache) storage.fieldsCache.set(target, fields.filter(isKept));
  for (const type of storage.objectTypes) type.fields = type.fields?.filter(isKept);
}
