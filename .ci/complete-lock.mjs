#!/usr/bin/env node
// Run after every change of dependencies: node .ci/complete-lock.mjs
// [FOLDER/package-lock.json]
//
// Adds optional packages for other platforms to package-lock.json, if the
// registry did not offer them when the lock file was written. `npm ci` refuses
// a lock file without them on every platform.
import { readFileSync, writeFileSync } from 'node:fs';

const path = process.argv[2] ?? 'package-lock.json';
const lock = JSON.parse(readFileSync(path, 'utf8'));
const { packages } = lock;

/** Whether Node.js resolves `name` from the package in folder `from`. */
function isLocked(from, name) {
  for (
    let at = from;
    at;
    at = at.slice(0, Math.max(0, at.lastIndexOf('node_modules/') - 1))
  ) {
    if (packages[`${at}/node_modules/${name}`]) return true;
  }
  return packages[`node_modules/${name}`] !== undefined;
}

function platformOf(name) {
  const [os] =
    name.match(/android|darwin|freebsd|linux|openharmony|win32/) ?? [];
  const [cpu] =
    name
      .replace('openharmony', '')
      .match(/arm64|arm|x64|ia32|riscv64|ppc64|s390x|loong64|wasm32/) ?? [];
  const libc =
    os === 'linux' &&
    (name.match(/musl/) ? 'musl' : name.match(/gnu/) ? 'glibc' : undefined);
  return {
    ...(cpu && { cpu: [cpu] }),
    ...(libc && { libc: [libc] }),
    ...(os && { os: [os] }),
  };
}

for (const [
  from,
  { optionalDependencies = {}, dev, devOptional },
] of Object.entries(packages)) {
  for (const [name, version] of Object.entries(optionalDependencies)) {
    if (isLocked(from, name)) continue;
    const entry = {
      version: version.replace(/^[\^~]/, ''),
      ...platformOf(name),
      optional: true,
    };
    packages[`node_modules/${name}`] =
      dev || devOptional ? { ...entry, dev: true } : entry;
    process.stdout.write(`${name}@${entry.version}\n`);
  }
}

lock.packages = Object.fromEntries(
  Object.entries(packages).sort(([a], [b]) => (a < b ? -1 : 1)),
);
writeFileSync(path, `${JSON.stringify(lock, null, 2)}\n`);
