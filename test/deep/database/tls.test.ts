// runs: embedded, postgres

import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, chownSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '#engine/config/config.js';
import { Database } from '#engine/database/database.js';
import { modelOf } from '#engine/process/model.js';
import { startFailure } from '#engine/process/start-failure.js';
import { modules } from '../../../src/modules.ts';
import { newFolder } from '../../support/folder.ts';
import {
  afterAll,
  beforeAll,
  describe,
  expect,
  test,
} from '../../support/jest.ts';
import { onPlainPostgres } from '../../support/process.ts';
import { hasPostgres, TestPostgres } from '../../support/servers/postgres.ts';

const hasOpenSsl = spawnSync('openssl', ['version']).status === 0;
const where =
  onPlainPostgres && hasPostgres && hasOpenSsl ? describe : describe.skip;

where(
  'TLS to PostgreSQL (where TEST_DATABASE_URL names a plain PostgreSQL, and PostgreSQL and openssl are installed)',
  () => {
    let folder: string;
    let secure: TestPostgres;
    let plain: TestPostgres;
    beforeAll(async () => {
      folder = await newFolder();
      certify();
      const files = {
        ssl_cert_file: join(folder, 'server.crt'),
        ssl_key_file: join(folder, 'server.key'),
      };
      secure = await TestPostgres.start({ ssl: 'on', ...files });
      plain = await TestPostgres.start();
    });
    afterAll(async () => {
      await Promise.all([secure.remove(), plain.remove()]);
      rmSync(folder, { recursive: true });
    });

    /**
     * Creates an authority, and a certificate for `localhost`, which is not
     * valid for 127.0.0.1.
     */
    function certify(): void {
      const openssl = (...args: string[]) =>
        execFileSync('openssl', args, { cwd: folder, stdio: 'ignore' });
      const request = [
        'req',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:P-256',
        '-nodes',
        '-days',
        '2',
      ];
      for (const name of ['root', 'other']) {
        openssl(
          ...request,
          '-x509',
          '-subj',
          `/CN=${name}`,
          '-keyout',
          `${name}.key`,
          '-out',
          `${name}.crt`,
        );
      }
      openssl(
        ...request,
        '-subj',
        '/CN=localhost',
        '-keyout',
        'server.key',
        '-out',
        'server.csr',
      );
      const signed = [
        '-CA',
        'root.crt',
        '-CAkey',
        'root.key',
        '-CAcreateserial',
        '-days',
        '2',
        '-out',
        'server.crt',
      ];
      openssl('x509', '-req', '-in', 'server.csr', ...signed);
      const owner = ['-u', '-g'].map((which) =>
        Number(execFileSync('id', [which, 'postgres'], { encoding: 'utf8' })),
      );
      chmodSync(folder, 0o755);
      for (const name of ['server.crt', 'server.key']) {
        chmodSync(join(folder, name), 0o600);
        chownSync(join(folder, name), owner[0] ?? 0, owner[1] ?? 0);
      }
    }

    /**
     * Returns whether the connections to a server are encrypted, or why the
     * connection fails.
     */
    async function connect(
      postgres: TestPostgres,
      host: string,
      search: string,
    ): Promise<boolean | string> {
      const url = new URL(postgres.url());
      url.hostname = host;
      url.search = search.replace(/(root|other)\.crt/, (name) =>
        join(folder, name),
      );
      let database: Database | undefined;
      try {
        database = await Database.open(
          loadConfig({ DATABASE_URL: url.href }).database,
          modelOf(modules),
        );
        await database.assertReachable();
        const text = 'select ssl from pg_stat_ssl where pid = pg_backend_pid()';
        const [[ssl] = []] = await database.rows<[string]>(
          { name: 'test ssl', text },
          [],
        );
        return ssl === 't';
      } catch (error) {
        return startFailure(error);
      } finally {
        await database?.close();
      }
    }

    const encrypted = /^true$/;
    const open = /^false$/;
    test.each<
      [
        server: 'secure' | 'plain',
        search: string,
        host: string,
        expected: RegExp,
      ]
    >([
      ['secure', '', '127.0.0.1', open],
      ['secure', '?sslmode=disable', '127.0.0.1', open],
      ['secure', '?sslmode=prefer', '127.0.0.1', encrypted],
      ['secure', '?sslmode=require', '127.0.0.1', encrypted],
      [
        'secure',
        '?sslmode=require&sslrootcert=root.crt',
        '127.0.0.1',
        encrypted,
      ],
      [
        'secure',
        '?sslmode=verify-ca&sslrootcert=root.crt',
        '127.0.0.1',
        encrypted,
      ],
      [
        'secure',
        '?sslmode=verify-full&sslrootcert=root.crt',
        'localhost',
        encrypted,
      ],
      ['plain', '?sslmode=prefer', '127.0.0.1', open],
      // In the cases below the service does not start, and prints the reason in
      // one line.
      ['plain', '?sslmode=require', '127.0.0.1', /does not support SSL/],
      [
        'secure',
        '?sslmode=require&sslrootcert=other.crt',
        '127.0.0.1',
        /certificate/,
      ],
      [
        'secure',
        '?sslmode=verify-ca&sslrootcert=other.crt',
        '127.0.0.1',
        /certificate/,
      ],
      ['secure', '?sslmode=verify-ca', '127.0.0.1', /sslrootcert/],
      [
        'secure',
        '?sslmode=verify-full&sslrootcert=root.crt',
        '127.0.0.1',
        /altnames|certificate/,
      ],
      [
        'secure',
        '?sslmode=verify-full&sslrootcert=system',
        'localhost',
        /certificate/,
      ],
      [
        'secure',
        '?sslmode=verify-ca&sslrootcert=/nowhere.crt',
        '127.0.0.1',
        /nowhere/,
      ],
    ])(
      'to a %s server with "%s", as %s: %s',
      async (server, search, host, expected) => {
        const outcome = `${await connect({ secure, plain }[server], host, search)}`;
        expect(outcome.split('\n')).toEqual([expect.stringMatching(expected)]);
      },
    );
  },
);
