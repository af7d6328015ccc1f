import { once } from 'node:events';
import { createServer } from 'node:http';
import { createGatewayRuntime } from '@graphql-hive/gateway-runtime';
import { gatewayConfig } from './gateway.config.js';

/** Hive Gateway without its command line. */

const supergraph = process.argv[2] ?? gatewayConfig.supergraph;
const server = createServer(
  createGatewayRuntime({ ...gatewayConfig, supergraph }),
);
await once(
  server.listen(Number(process.env.PORT ?? 4030), '127.0.0.1'),
  'listening',
);
console.log(`gateway: http://127.0.0.1:${server.address().port}/graphql`);
