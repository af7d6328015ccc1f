import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { expect, test } from '../support/jest.ts';
import { freePort } from '../support/process.ts';

test('a port that a test has is not given to another run', async () => {
  const port = await freePort();
  const other = createSocket('udp4');
  other.bind({ port, address: '127.0.0.1', exclusive: true });
  await expect(once(other, 'listening')).rejects.toThrow('EADDRINUSE');
  other.close();
});
