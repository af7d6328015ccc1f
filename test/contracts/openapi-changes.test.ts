import { readFileSync } from 'node:fs';
import { describe, expect, test } from '../support/jest.ts';
import { breakingOpenApiChanges, type Json } from './openapi-changes.ts';

const committed = readFileSync('schema/openapi.json', 'utf8');

function changes(change: (document: Json) => void): string[] {
  const document = JSON.parse(committed);
  change(document);
  return breakingOpenApiChanges(JSON.parse(committed), document);
}

const schemas = (document: Json) => document.components.schemas;
const list = (document: Json) => document.paths['/pets'].get;

describe('the OpenAPI document', () => {
  test.each<[string, (document: Json) => void]>([
    ['GET /pets/{petId} was removed', (d) => delete d.paths['/pets/{petId}']],
    ['POST /pets was removed', (d) => delete d.paths['/pets'].post],
    [
      'GET /pets: each of the response 200.status was removed',
      (d) => delete schemas(d).Pet.properties.status,
    ],
    [
      'POST /pets: the response 201.status is now optional',
      (d) => schemas(d).Pet.required.pop(),
    ],
    [
      'POST /pets: the response 201.id had the type "integer" and has now "string"',
      (d) => (schemas(d).Pet.properties.id.type = 'string'),
    ],
    [
      'POST /pets: the body.categoryId had the format "int64" and has now "int32"',
      (d) => (schemas(d).NewPet.properties.categoryId.format = 'int32'),
    ],
    [
      'POST /pets: the response 201.name had the type "string" and has now ["string","null"]',
      (d) => (schemas(d).Pet.properties.name.type = ['string', 'null']),
    ],
    [
      'POST /pets: the body.status had the enum ["available","pending","sold"] and has now ["available","pending"]',
      (d) => schemas(d).PetStatus.enum.pop(),
    ],
    [
      'POST /pets: the body.status had the default "available" and has now "sold"',
      (d) => (schemas(d).NewPet.properties.status.default = 'sold'),
    ],
    [
      'POST /pets: the body.name had the maxLength 1000 and has now 999',
      (d) => (schemas(d).NewPet.properties.name.maxLength = 999),
    ],
    [
      'POST /pets: the body.colour is now required',
      (d) => schemas(d).NewPet.required.push('colour'),
    ],
    [
      'GET /pets: the new query parameter store is required',
      (d) =>
        list(d).parameters.push({ in: 'query', name: 'store', required: true }),
    ],
    [
      'GET /pets: the query parameter after was removed',
      (d) => list(d).parameters.splice(2, 1),
    ],
    [
      'GET /pets: the query parameter limit had the maximum 100 and has now 50',
      (d) => (list(d).parameters[1].schema.maximum = 50),
    ],
    [
      'POST /pets: the response 201 was removed',
      (d) => delete d.paths['/pets'].post.responses[201],
    ],
    [
      'GET /pets: the response 200 with the header Link was removed',
      (d) => delete list(d).responses[200].headers.Link,
    ],
    [
      'GET /pets: it had the operationId "listPets" and has now "pets"',
      (d) => (list(d).operationId = 'pets'),
    ],
    ['the address /v1 was removed', (d) => (d.servers[0].url = '/v2')],
    [
      'the security scheme apiKey has changed',
      (d) => (d.components.securitySchemes.apiKey.scheme = 'basic'),
    ],
  ])('breaks: %s', (sentence, change) => {
    expect(changes(change)).toContain(sentence);
  });

  test('takes additions without a break', () => {
    const additions: Array<(document: Json) => void> = [
      (d) =>
        (d.paths['/colours'] = {
          get: { operationId: 'listColours', responses: {} },
        }),
      (d) =>
        list(d).parameters.push({
          in: 'query',
          name: 'colour',
          schema: { type: 'string' },
        }),
      (d) => (schemas(d).NewPet.properties.colour = { type: 'string' }),
      (d) => (schemas(d).Pet.properties.colour = { type: 'string' }),
      // A member that is no longer required.
      (d) => schemas(d).NewPet.required.pop(),
      (d) => (list(d).parameters[1].schema.maximum = 200),
      (d) => (list(d).responses[410] = { description: 'Gone.' }),
      (d) => (list(d).description = 'Lists animals.'),
    ];
    expect(additions.flatMap(changes)).toEqual([]);
  });
});
