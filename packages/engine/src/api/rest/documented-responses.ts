import { type TSchema, Type } from 'typebox';
import {
  type ErrorCode,
  httpStatusOf,
  restCodes,
  type StoreError,
} from '../../errors.ts';
import { maxExactTotal } from '../../validation/page.ts';
import { pageLimit } from '../../validation/page-size.ts';

/** The specification's Error. */
export const ErrorSchema = Type.Object(
  {
    code: Type.String({
      description: `Machine-readable error code: ${restCodes.join(', ')}.`,
      examples: ['BAD_USER_INPUT'],
    }),
    message: Type.String({ description: 'Human-readable description.' }),
    status: Type.Integer({
      description: 'The HTTP status code of the response.',
      minimum: 400,
      maximum: 599,
    }),
  },
  { $id: 'Error', description: 'Any failure.' },
);

/** A response in OpenAPI. */
export interface Response {
  description: string;
  headers?: Record<string, object>;
  content?: Record<string, { schema: TSchema; example?: unknown }>;
  /** `null` for a response without a body. */
  type?: 'null';
}

/**
 * A documented success: a JSON body, with optional headers.
 *
 * @example response: { 201: success(toySchema, 'Toy added.') }
 */
export function success(
  schema: TSchema,
  description: string,
  headers?: Record<string, object>,
): Response {
  return {
    description,
    headers,
    content: { 'application/json': { schema } },
  };
}

/**
 * A documented page of a list.
 *
 * @param name of the list's component
 * @param isCounted whether the list has a total
 * @param maxItems the maximum of its `limit`
 * @example response: { 200: pageOf(toySchema, 'Toys', 'A page of toys.', true) }
 */
export function pageOf(
  item: TSchema,
  name: string,
  description: string,
  isCounted = false,
  maxItems: number = pageLimit.max,
): Response {
  const schema = Type.Array(item, {
    $id: name,
    description: `${description} In the order of \`sort\`.`,
    maxItems,
  });
  const Link = headerSchema(
    'RFC 8288: the address of the next page with `rel="next"`, absent on the last page, and of the previous one with `rel="prev"`.',
  );
  return success(schema, description, { Link, ...(isCounted && total) });
}

const total = {
  'Preference-Applied': headerSchema(
    `RFC 7240: \`count=exact\`, or \`count=estimated\` beyond ${maxExactTotal} items; absent unless \`Prefer\` asks for it.`,
  ),
  'X-Total-Count': headerSchema(
    'The number of items on all pages; absent unless `Prefer: count=exact` asks for it.',
  ),
};

/**
 * A documented failure.
 *
 * @example 404: failure('NOT_FOUND', 'No such toy.', 'There is no toy 7.')
 */
export function failure(
  code: ErrorCode,
  description: string,
  message: string,
  headers?: Record<string, object>,
): Response {
  const example = { code, message, status: httpStatusOf[code] };
  return {
    description,
    headers,
    content: { 'application/json': { schema: ErrorSchema, example } },
  };
}

/** A documented failure whose example is the service's own error. */
export function documentedFailure(
  { code, message }: StoreError,
  description: string,
  headers?: Record<string, object>,
) {
  return failure(code, description, message, headers);
}

export function headerSchema(description: string) {
  return { type: 'string', description };
}
