import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { newFolder } from '../../support/folder.ts';
import { type Env, type Running, runCommand } from '../../support/process.ts';
import { childrenOf } from '../../support/servers/program.ts';

const unshare = [
  'unshare',
  '--mount',
  '--pid',
  '--fork',
  '--kill-child',
  '--propagation',
  'private',
  '--',
];

/**
 * Whether this process may create namespaces and mounts: it needs root, and a
 * container around it may forbid both.
 */
export const canContain = mayUnshare();

function mayUnshare(): boolean {
  try {
    execFileSync(
      unshare[0] as string,
      [...unshare.slice(1), 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt'],
      {
        stdio: 'ignore',
      },
    );
    return true;
  } catch {
    return false;
  }
}

/** The user of the image. */
const user = 1000;

/**
 * Runs the image as Docker and Kubernetes do, without either. The root file
 * system is read-only and has the packages for production only; `/data` and
 * `/tmp` are writable. The command is process 1, not root, without new
 * privileges.
 */
export async function createContainer() {
  const root = await newFolder();
  const data = join(root, 'data');
  for (const folder of [
    ...system,
    'node',
    'proc',
    'tmp',
    'data',
    'app/node_modules',
  ]) {
    mkdirSync(join(root, folder), { recursive: true });
  }
  chownSync(data, user, user);
  const isRemoved = removedPaths();
  const isBuilt = (path: string) =>
    !/^dist\/(?:test|bench)/.test(path) && !isRemoved(path);
  for (const { from, to } of copied())
    cpSync(from, join(root, 'app', to), { recursive: true, filter: isBuilt });
  const packages = productionPackages();
  for (const path of packages)
    mkdirSync(join(root, 'app', path), { recursive: true });
  // mkdtemp creates a folder that only its owner may enter.
  chmodSync(root, 0o755);
  const workspaces = join(root, 'app/node_modules/@animal-store');
  mkdirSync(workspaces);
  for (const name of readdirSync('node_modules/@animal-store')) {
    symlinkSync(`../../packages/${name}`, join(workspaces, name));
  }
  const enter = join(root, 'enter');
  writeFileSync(enter, script(root, packages));
  return {
    data,
    /** Runs a command in the container, as process 1. */
    run(command: string[], env: Env): Running {
      const inside = {
        ...imageEnv(),
        ...env,
        PATH: '/node:/usr/sbin:/usr/bin:/bin',
      };
      const privileges = [
        '--clear-groups',
        '--bounding-set=-all',
        '--inh-caps=-all',
        '--no-new-privs',
      ];
      const asUser = [
        'setpriv',
        '--reuid',
        `${user}`,
        '--regid',
        `${user}`,
        ...privileges,
        '--',
      ];
      return runCommand(
        [...unshare, 'sh', enter, ...asUser, ...command],
        inside,
      );
    },
    remove: () => rmSync(root, { recursive: true }),
  };
}

/** The process id, outside the container, of a running command. */
export const processOf = ({ child }: Running) =>
  childrenOf(child.pid ?? 0)[0] ?? 0;

/**
 * Folders of this machine that `setpriv`, `sh` and the libraries of Node.js
 * need.
 */
const system = ['usr', 'bin', 'lib', 'lib64', 'etc', 'dev'];

const script = (root: string, packages: string[]) => `set -e
cd ${root}
show() { mount --bind "$1" "$2"; mount -o remount,bind,ro "$2"; }
mount --bind . . && cd ${root}
mount --bind data data
for folder in ${system.join(' ')}; do show /$folder $folder; done
show ${dirname(process.execPath)} node
for package in ${packages.join(' ')}; do show ${resolve()}/$package app/$package; done
mount -t proc proc proc
mount -t tmpfs -o mode=1777,size=64m tmpfs tmp
mount -o remount,bind,ro .
exec chroot . /usr/bin/env -C /app "$@"
`;

/**
 * The packages that `npm ci --omit=dev --omit=optional` installs; nested
 * packages come with their parents.
 */
function productionPackages(): string[] {
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'));
  const isInstalled = ([path, { dev, optional, devOptional, link }]: [
    string,
    any,
  ]) =>
    /^node_modules\/(?:@[^/]+\/)?[^/]+$/.test(path) &&
    !dev &&
    !optional &&
    !devOptional &&
    !link;
  return (Object.entries(packages) as Array<[string, any]>)
    .filter(isInstalled)
    .map(([path]) => path);
}

/** The files that the first stage removes after the build. */
function removedPaths(): (path: string) => boolean {
  const [, list = ''] =
    /^RUN rm -rf (dist(?:.|\n)+?[^\\])$/m.exec(
      readFileSync('Dockerfile', 'utf8'),
    ) ?? [];
  const globs = list
    .split(/[\s\\]+/)
    .map((glob) => glob.replaceAll('.', '\\.').replaceAll('*', '[^/]*'));
  const pattern = new RegExp(`^(?:${globs.join('|')})$`);
  return (path) => pattern.test(path);
}

/**
 * The paths that the last stage of the Dockerfile copies, except the packages:
 * here, and in the image.
 */
function copied(): Array<{ from: string; to: string }> {
  const stage =
    readFileSync('Dockerfile', 'utf8')
      .split(/^FROM /m)
      .at(-1) ?? '';
  return [...stage.matchAll(/^COPY (?:--from=\S+ )?(.+) (\S+)$/gm)]
    .flatMap(([, sources = '', to = '']) =>
      sources.split(' ').map((source) => {
        const from = source.replace(/^\/app\//, '');
        return { from, to: to === './' ? basename(from) : to };
      }),
    )
    .filter(({ from }) => from !== 'node_modules');
}

/** The variables that the image sets. */
function imageEnv(): Env {
  const [, list = ''] =
    /^ENV (.+)$/m.exec(readFileSync('Dockerfile', 'utf8')) ?? [];
  return Object.fromEntries(
    list.split(' ').map((one) => one.split('=') as [string, string]),
  );
}
