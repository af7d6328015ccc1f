/* eslint-disable */
import * as types from './graphql.ts';
import type { TypedDocumentNode as DocumentNode } from '@graphql-typed-document-node/core';

/**
 * Map of all GraphQL operations in the project.
 *
 * This map has several performance disadvantages:
 * 1. It is not tree-shakeable, so it will include all operations in the project.
 * 2. It is not minifiable, so the string of a GraphQL query will be multiple times inside the bundle.
 * 3. It does not support dead code elimination, so it will add unused operations.
 *
 * Therefore it is highly recommended to use the babel or swc plugin for production.
 * Learn more about it here: https://the-guild.dev/graphql/codegen/plugins/presets/preset-client#reducing-bundle-size
 */
type Documents = {
    "subscription PetAdded($after: ID, $status: PetStatus) {\n  petAdded(after: $after, status: $status) {\n    id\n    name\n    categoryId\n    status\n  }\n}": typeof types.PetAddedDocument,
    "query Pets($status: PetStatus, $limit: Int, $after: ID) {\n  pets(status: $status, limit: $limit, after: $after) {\n    id\n    name\n    categoryId\n    status\n  }\n}\n\nquery Pet($id: ID!) {\n  pet(id: $id) {\n    id\n    name\n    categoryId\n    status\n  }\n}\n\nmutation CreatePet($input: NewPet!) {\n  createPet(input: $input) {\n    id\n    name\n    categoryId\n    status\n  }\n}": typeof types.PetsDocument,
};
const documents: Documents = {
    "subscription PetAdded($after: ID, $status: PetStatus) {\n  petAdded(after: $after, status: $status) {\n    id\n    name\n    categoryId\n    status\n  }\n}": types.PetAddedDocument,
    "query Pets($status: PetStatus, $limit: Int, $after: ID) {\n  pets(status: $status, limit: $limit, after: $after) {\n    id\n    name\n    categoryId\n    status\n  }\n}\n\nquery Pet($id: ID!) {\n  pet(id: $id) {\n    id\n    name\n    categoryId\n    status\n  }\n}\n\nmutation CreatePet($input: NewPet!) {\n  createPet(input: $input) {\n    id\n    name\n    categoryId\n    status\n  }\n}": types.PetsDocument,
};

/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 *
 *
 * @example
 * ```ts
 * const query = graphql(`query GetUser($id: ID!) { user(id: $id) { name } }`);
 * ```
 *
 * The query argument is unknown!
 * Please regenerate the types.
 */
export function graphql(source: string): unknown;

/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "subscription PetAdded($after: ID, $status: PetStatus) {\n  petAdded(after: $after, status: $status) {\n    id\n    name\n    categoryId\n    status\n  }\n}"): (typeof documents)["subscription PetAdded($after: ID, $status: PetStatus) {\n  petAdded(after: $after, status: $status) {\n    id\n    name\n    categoryId\n    status\n  }\n}"];
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "query Pets($status: PetStatus, $limit: Int, $after: ID) {\n  pets(status: $status, limit: $limit, after: $after) {\n    id\n    name\n    categoryId\n    status\n  }\n}\n\nquery Pet($id: ID!) {\n  pet(id: $id) {\n    id\n    name\n    categoryId\n    status\n  }\n}\n\nmutation CreatePet($input: NewPet!) {\n  createPet(input: $input) {\n    id\n    name\n    categoryId\n    status\n  }\n}"): (typeof documents)["query Pets($status: PetStatus, $limit: Int, $after: ID) {\n  pets(status: $status, limit: $limit, after: $after) {\n    id\n    name\n    categoryId\n    status\n  }\n}\n\nquery Pet($id: ID!) {\n  pet(id: $id) {\n    id\n    name\n    categoryId\n    status\n  }\n}\n\nmutation CreatePet($input: NewPet!) {\n  createPet(input: $input) {\n    id\n    name\n    categoryId\n    status\n  }\n}"];

export function graphql(source: string) {
  return (documents as any)[source] ?? {};
}

export type DocumentType<TDocumentNode extends DocumentNode<any, any>> = TDocumentNode extends DocumentNode<  infer TType,  any>  ? TType  : never;