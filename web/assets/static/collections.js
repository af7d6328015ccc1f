// The collections of the service, as its OpenAPI document describes them.
import { root } from './key.js';

/**
 * Reads the document. A collection is a path whose GET answers an array, page
 * by page. @throws Error when it cannot be loaded
 */
export async function loadCollections() {
  const api = await (await fetch(new URL('v1/openapi.json', root))).json();
  return Object.entries(api.paths).flatMap(([path, { get, post }]) =>
    get && isPaged(get) ? [collectionOf(api, path, get, post)] : [],
  );
}

const isPaged = ({ parameters = [] }) =>
  parameters.some(({ name }) => name === 'after');

function collectionOf(api, path, get, post) {
  const schemaOf = (schema) => resolved(api, schema);
  const { content } = get.responses[200];
  const { properties } = schemaOf(schemaOf(json(content)).items);
  const query = get.parameters
    .filter((parameter) => parameter.in === 'query')
    .map(({ name, schema }) => ({ name, ...schemaOf(schema) }));
  const orders = query.find(({ name }) => name === 'sort')?.enum ?? ['id'];
  return {
    name: path.slice(1),
    title: get.summary.replace(/^List /, ''),
    members: membersOf(schemaOf, properties),
    filters: query.filter(isFilter),
    orders,
    order: orders.includes('id_desc') ? 'id_desc' : orders[0],
    isLive: 'text/event-stream' in content,
    hasChanges: query.some(({ name }) => name === 'follow'),
    input: post && inputOf(schemaOf, post),
  };
}

/** One of each kind: not those by several values, and two ends of a range. */
const isFilter = ({ name, type }) =>
  type !== 'array' &&
  !/^(?:limit|after|before|sort|follow)$|_(?:gt|lte)$/.test(name);

const json = (content) => content['application/json'].schema;

function inputOf(schemaOf, { summary, requestBody, 'x-scope': scope }) {
  const { properties, required = [] } = schemaOf(json(requestBody.content));
  const isRequired = ({ name }) => required.includes(name);
  const fields = membersOf(schemaOf, properties).map((field) => ({
    ...field,
    isRequired: isRequired(field),
  }));
  return { title: summary, scope, fields };
}

const membersOf = (schemaOf, properties) =>
  Object.entries(properties).map(([name, schema]) => ({
    name,
    ...schemaOf(schema),
  }));

/** A schema without references, and without the alternative `null`. */
function resolved(api, { $ref, anyOf = [], type, ...schema }) {
  const named = $ref && api.components.schemas[$ref.split('/').at(-1)];
  const [other] = anyOf.filter((one) => one.type !== 'null');
  const [found = 'object'] = [type].flat().filter((one) => one !== 'null');
  const more = named ?? other;
  const choices = found === 'boolean' && { enum: ['true', 'false'] };
  return {
    type: found,
    ...choices,
    ...(more && resolved(api, more)),
    ...schema,
  };
}

const suffixes = {
  gte: 'from',
  lt: 'before',
  prefix: 'begins with',
  is_null: 'is missing',
};

/** The words of a member: `categoryId` is "Category id". */
export function wordsOf(name) {
  const [, member, suffix] = /^(.+?)(?:_(gte|lt|prefix|is_null))?$/.exec(name);
  const words = member.replace(
    /[A-Z]/g,
    (letter) => ` ${letter.toLowerCase()}`,
  );
  const sentence = words[0].toUpperCase() + words.slice(1);
  return suffix ? `${sentence} ${suffixes[suffix]}` : sentence;
}
