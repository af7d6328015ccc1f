import { loadConfig } from '#engine/config/config.js';
import { traces } from '#engine/features/traces/index.js';
import { expect, test } from '../../support/jest.ts';

const names = [
  'OTEL_EXPORTER_OTLP_ENDPOINT',
  'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
];
const load = (name: string, address: string) =>
  loadConfig({ [name]: address }, [traces]).values;

test.each(names)('%s is an address with a scheme, or is named', (name) => {
  for (const given of ['http://[::1]:4318', 'HTTPS://otel.example/v1/traces/'])
    expect(load(name, given)).toMatchObject({ [name]: given });
  for (const given of [
    '127.0.0.1:4318',
    'localhost:4318',
    'otel.example',
    '//otel.example:4318',
    'grpc://otel.example:4317',
    'http:otel.example',
    'http://',
    'http://otel.example:port',
  ])
    expect(() => load(name, given)).toThrow(
      `${name} must be an http:// or https:// address`,
    );
});
