import { readFileSync } from 'node:fs';
import { describe, expect, test } from '../support/jest.ts';
import { breakingOpenApiChanges } from './openapi-changes.ts';
import type { Json } from './schema-changes.ts';

const committed = readFileSync('schema/openapi.json', 'utf8');

function changes(change: (document: Json) => void): string[] {
  const document = JSON.parse(committed);
  change(document);
  return breakingOpenApiChanges(JSON.parse(committed), document);
}

const schemas = (document: Json) => document.components.schemas;
const list = (document: Json) => document.paths['/pets'].get;
const create = (document: Json) => document.paths['/pets'].post;

describe('the OpenAPI document', () => {
  test.each<[string, (document: Json) => void, string]>([
    ['a removed path', (d) => delete d.paths['/pets/{petId}'], 'GET /pets/{petId} was removed'],
    ['a removed method', (d) => delete d.paths['/pets'].post, 'POST /pets was removed'],
    [
      'a removed member',
      (d) => delete schemas(d).Pet.properties.status,
      'GET /pets: each of the response 200.status was removed',
    ],
    [
      'a member that may be missing',
      (d) => schemas(d).Pet.required.pop(),
      'POST /pets: the response 201.status was always there and is now optional',
    ],
    [
      'another type',
      (d) => (schemas(d).Pet.properties.id.type = 'string'),
      'POST /pets: the response 201.id was integer and is now string',
    ],
    [
      'a narrower type',
      (d) => (schemas(d).NewPet.properties.categoryId.format = 'int32'),
      'POST /pets: the body.categoryId had the format int64 and has now int32',
    ],
    [
      'a wider type in a response',
      (d) => (schemas(d).Pet.properties.name.type = ['string', 'null']),
      'POST /pets: the response 201.name was string and is now string or null',
    ],
    [
      'a narrower enumeration',
      (d) => schemas(d).PetStatus.enum.pop(),
      'POST /pets: the body.status no longer takes sold',
    ],
    [
      'a narrower enumeration of a parameter',
      (d) => schemas(d).PetStatus.enum.pop(),
      'GET /pets: the query parameter status no longer takes sold',
    ],
    [
      'another default beside a reference',
      (d) => (schemas(d).NewPet.properties.status.default = 'sold'),
      'POST /pets: the body.status had the default "available" and has now "sold"',
    ],
    [
      'a new required member',
      (d) => schemas(d).NewPet.required.push('colour'),
      'POST /pets: the body.colour is now required',
    ],
    [
      'a new required parameter',
      (d) => list(d).parameters.push({ in: 'query', name: 'store', required: true }),
      'GET /pets: the new query parameter store is required',
    ],
    ['a removed parameter', (d) => list(d).parameters.splice(2, 1), 'GET /pets: the query parameter after was removed'],
    [
      'a smaller page',
      (d) => (list(d).parameters[1].schema.maximum = 50),
      'GET /pets: the query parameter limit had the maximum 100 and has now 50',
    ],
    [
      'another default',
      (d) => (list(d).parameters[1].schema.default = 10),
      'GET /pets: the query parameter limit had the default 20 and has now 10',
    ],
    [
      'a changed status',
      (d) => {
        create(d).responses[200] = create(d).responses[201];
        delete create(d).responses[201];
      },
      'POST /pets: the response 201 was removed',
    ],
    [
      'a removed header',
      (d) => delete list(d).responses[200].headers.Link,
      'GET /pets: the header Link of the response 200 was removed',
    ],
    [
      'another operationId',
      (d) => (list(d).operationId = 'pets'),
      'GET /pets: its operationId was listPets and is now pets',
    ],
    ['another address', (d) => (d.servers[0].url = '/v2'), 'the address /v1 was removed'],
    [
      'other credentials',
      (d) => (d.components.securitySchemes.apiKey.scheme = 'basic'),
      'the security scheme apiKey has changed',
    ],
  ])('%s breaks', (_name, change, sentence) => {
    expect(changes(change)).toContain(sentence);
  });

  test.each<[string, (document: Json) => void]>([
    ['a new path', (d) => (d.paths['/colours'] = { get: { operationId: 'listColours', responses: {} } })],
    [
      'a new optional parameter',
      (d) => list(d).parameters.push({ in: 'query', name: 'colour', schema: { type: 'string' } }),
    ],
    ['a new optional member of a request', (d) => (schemas(d).NewPet.properties.colour = { type: 'string' })],
    ['a new member of a response', (d) => (schemas(d).Pet.properties.colour = { type: 'string' })],
    ['a member that need not be sent any more', (d) => schemas(d).NewPet.required.pop()],
    ['a larger page', (d) => (list(d).parameters[1].schema.maximum = 200)],
    ['a new failure', (d) => (list(d).responses[410] = { description: 'Gone.' })],
    ['other words', (d) => (list(d).description = 'Lists animals.')],
  ])('%s does not break', (_name, change) => {
    expect(changes(change)).toEqual([]);
  });
});
