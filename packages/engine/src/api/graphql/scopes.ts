import { fieldsIn, fragmentsOf } from '@animal-store/graphql-limits/limits';
import {
  type ASTNode,
  type ASTVisitor,
  type DocumentNode,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLSchema,
  getNamedType,
  isObjectType,
  type OperationDefinitionNode,
  TypeInfo,
  visit,
  visitWithTypeInfo,
} from 'graphql';
import type { DeprecatedField } from '../../access/deprecations/deprecation.ts';
import type { Call } from '../../call.ts';
import { reportFault } from '../../errors.ts';
import {
  anyOf,
  forbidden,
  hasScope,
  permits,
  type Right,
  type Scope,
} from '../../scopes.ts';
import type { Int64 } from '../../validation/int64.ts';
import { metadataOf } from './types.ts';

/** Finds an item by its id, for each GraphQL type, by the type's name. */
export type References = Record<
  string,
  (id: Int64 | undefined, call: Call) => Promise<object | null>
>;

/** What a module adds to the schema. */
export interface SchemaPart {
  /** Its name in scopes. */
  readonly module: string;
  readonly isLocal?: true | undefined;
  readonly resolvers: object[];
  /** The GraphQL types of its entities. */
  readonly types: string[];
  readonly references: References;
  readonly audiences: Audiences;
}

/** Modules whose scopes open a type, too, by its name. */
export type Audiences = Readonly<Record<string, readonly string[]>>;

/** The same of the fields of a resolver. */
export interface WithAudiences {
  readonly audiences?: readonly string[];
  /** The module whose scope they need, in place of its own one. */
  readonly scope?: string;
}

function scopeOfAll(
  module: string,
  right: Right,
  audiences: readonly string[] = [],
) {
  return anyOf([module, ...audiences].map((one) => `${one}:${right}`));
}

/** In the extensions of fields with a resolver, and of entities' types. */
interface Scoped {
  scope?: Scope;
}

/** What type-graphql calls the fields of types; those of others say theirs. */
const fieldKinds: Record<string, string | undefined> = {
  queries: 'Query',
  mutations: 'Mutation',
  subscriptions: 'Subscription',
  fieldResolvers: undefined,
};

/** The fields of resolvers in a schema that is built, with their types. */
export function resolvedFields(resolvers: object[]) {
  const byClass = new Map<unknown, WithAudiences>(
    resolvers.map((one) => [one.constructor, one]),
  );
  return Object.entries(fieldKinds).flatMap(([kind, root]) => {
    const own = metadataOf(kind).filter(({ target }) => byClass.has(target));
    return own.map(({ schemaName: name, getObjectType, getType, target }) => ({
      isRoot: root !== undefined,
      type: root ?? objectTypeName(getObjectType?.()),
      returned: objectTypeName(getType?.()),
      name,
      audiences: byClass.get(target)?.audiences,
      own: byClass.get(target)?.scope,
    }));
  });
}

function objectTypeName(type: unknown) {
  const types = metadataOf('objectTypes');
  return types.find(({ target }) => target === type)?.name ?? '';
}

/**
 * Sets the scope of each field that a module resolves, and of each type of its
 * entities, whose items other modules' fields return, too. An operation returns
 * none of another module: REST would not need the other scope.
 */
export function setScopes(schema: GraphQLSchema, parts: SchemaPart[]) {
  const modules = parts.map(({ module }) => module);
  for (const { module, types, audiences } of parts) {
    for (const name of types) {
      for (const one of audiences[name] ?? [])
        if (!modules.includes(one))
          reportFault(`${name} has an audience of ${one}, which is no module.`);
      const type = schema.getType(name);
      const scope = scopeOfAll(module, 'read', audiences[name]);
      if (type) type.extensions = { ...type.extensions, scope };
    }
  }
  for (const { module, resolvers } of parts) {
    for (const one of resolvedFields(resolvers)) {
      const { isRoot, type, name, returned, audiences, own = module } = one;
      if (!modules.includes(own))
        reportFault(`${name} needs a scope of ${own}, which is no module.`);
      const field = fieldOf(schema.getType(type), name);
      if (!field) continue;
      if (returned && `${getNamedType(field.type)}` !== returned)
        reportFault(
          `${type}.${name} is a member: give the field with ${returned} another name.`,
        );
      const right: Right = type === 'Mutation' ? 'write' : 'read';
      const scope = scopeOfAll(own, right, audiences);
      field.extensions = { ...field.extensions, scope };
      const words = scope.split('|').join('` or `');
      field.description += ` Needs the scope \`${words}\`.`;
      if (isRoot) assertOwn(field, `${own}:read`);
    }
  }
}

/** REST would not need the scope of another module's items. */
function assertOwn(field: GraphQLField<unknown, unknown>, own: Scope) {
  const type = getNamedType(field.type);
  const isPlain = isObjectType(type) && !(type.extensions as Scoped).scope;
  const members = isPlain ? Object.values(type.getFields()) : [];
  for (const one of [field, ...members]) {
    const { name, extensions } = getNamedType(one.type);
    const { scope = own } = extensions as Scoped;
    if (!scope.split('|').includes(own))
      reportFault(
        `${field.name} returns ${name} of another module: give it an $id of its own.`,
      );
  }
}

/** The scope that a root field needs. */
export function scopeOf({ extensions }: { extensions: unknown }): Scope {
  return (extensions as Scoped).scope ?? 'write';
}

/** What the fields of an operation, nested ones included, are about. */
export interface Uses {
  /**
   * The scopes that they need, except those that a mutation's own scope
   * includes: each mutation is guarded by itself (`guardRoots`).
   */
  readonly scopes: readonly Scope[];
  /** The removal dates of the deprecated ones, by their coordinates. */
  readonly deprecated: Map<string, Date>;
}

export function usesOf(
  schema: GraphQLSchema,
  document: DocumentNode,
  { operation, selectionSet }: OperationDefinitionNode,
): Uses {
  const fragments = fragmentsOf(document);
  const root = schema.getRootType(operation);
  const scopes = new Set<Scope>();
  const deprecated = new Map<string, Date>();

  function collect(part: ASTNode, parent?: typeof root, own?: Scope | false) {
    const types = new TypeInfo(schema, parent);
    const add = ({ scope }: Scoped = {}) => {
      const isIncluded = own && scope && permits(own, scope);
      if (scope && !isIncluded) scopes.add(scope);
    };
    const visitor: ASTVisitor = {
      Field({ name }) {
        const type = types.getParentType();
        const { extensions } = types.getFieldDef() ?? {};
        add(type?.extensions);
        add(extensions);
        const { deprecation } = { ...extensions } as Partial<DeprecatedField>;
        if (deprecation)
          deprecated.set(`${type}.${name.value}`, deprecation.removal);
      },
      FragmentSpread({ name }) {
        const fragment = fragments(name.value);
        if (fragment) collect(fragment, undefined, own);
      },
    };
    visit(part, visitWithTypeInfo(types, visitor));
  }

  for (const node of fieldsIn(selectionSet, fragments)) {
    const field = fieldOf(root, node.name.value);
    const own = operation === 'mutation' && field && scopeOf(field);
    collect(node, root, own);
  }
  return { scopes: [...scopes], deprecated };
}

/** Undefined for introspection. */
function fieldOf(type: GraphQLNamedType | null | undefined, name: string) {
  return isObjectType(type) ? type.getFields()[name] : undefined;
}

/** The references of all modules, which need the scopes of their types. */
export function guardedReferences(parts: SchemaPart[]) {
  const guarded: References = {};
  for (const { module, references, audiences } of parts) {
    for (const [type, find] of Object.entries(references)) {
      const scope = scopeOfAll(module, 'read', audiences[type]);
      guarded[type] = async (id, call) => {
        if (!hasScope(call.caller, scope)) throw forbidden(scope, call.caller);
        return find(id, call);
      };
    }
  }
  return guarded;
}
