/** type-graphql keeps declarations for the whole process, and other test files run in it after this one. */
export function forgetFields(names: string[]): void {
  const { TypeGraphQLMetadataStorage: storage } = globalThis as any;
  const isKept = ({ name, methodName }: { name: string; methodName?: string }) => !names.includes(methodName ?? name);
  storage.fieldResolvers = storage.fieldResolvers.filter(isKept);
  storage.fields = storage.fields.filter(isKept);
  for (const [target, fields] of storage.fieldsCache) storage.fieldsCache.set(target, fields.filter(isKept));
  for (const type of storage.objectTypes) type.fields = type.fields?.filter(isKept);
}
