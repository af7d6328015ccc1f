import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { join } from 'node:path';
import tls from 'node:tls';
import { Courier } from '#engine/features/webhooks/post.js';
import { newFolder } from '../../../support/folder.ts';
import { expect, test } from '../../../support/jest.ts';
import { eventually } from '../../../support/process.ts';

const hasOpenSsl = spawnSync('openssl', ['version']).status === 0;

async function certify() {
  const folder = await newFolder();
  const request =
    'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=endpoint -addext subjectAltName=IP:127.0.0.1 -keyout key -out cert';
  const options = { cwd: folder, stdio: 'ignore' } as const;
  execFileSync('openssl', request.split(' '), options);
  const [key, cert] = ['key', 'cert'].map((name) =>
    readFileSync(join(folder, name), 'utf8'),
  );
  rmSync(folder, { recursive: true });
  return { key: `${key}`, cert: `${cert}` };
}

(hasOpenSsl ? test : test.skip)(
  'events that follow each other share a connection, which is closed when it is idle (skipped without openssl)',
  async () => {
    const certificate = await certify();
    const server = createServer(certificate, (_request, response) =>
      response.end(),
    );
    // An endpoint that never closes.
    server.keepAliveTimeout = 0;
    const open = new Set<Socket>();
    let connections = 0;
    server.on('secureConnection', (socket: Socket) => {
      connections += 1;
      open.add(socket);
      socket.once('close', () => open.delete(socket));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const url = `https://127.0.0.1:${port}/`;
    const courier = new Courier(true);
    const before = tls.getCACertificates('default');
    tls.setDefaultCACertificates([certificate.cert]);
    try {
      const receiver = { url, secrets: ['whsec_'], subscription: null };
      for (const id of ['1', '2', '3'])
        await courier.post(receiver, { id, body: {} });
      expect(connections).toBe(1);
      await eventually(async () => open.size === 0);
    } finally {
      tls.setDefaultCACertificates(before);
      courier.close();
      server.closeAllConnections();
      server.close();
    }
  },
);
