import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

/**
 * A secret is `ask_` + 256 random bits + a CRC-32 of both, all in base 62 (43
 * and 6 digits). The prefix lets leak scanners recognise a secret
 * (`ask_[0-9A-Za-z]{49}`), the checksum detects a typo without a look-up.
 */
const secretPrefix = 'ask_';
/** Finds secrets and signed tokens in a text, also truncated ones. */
export const secretsInText = new RegExp(
  `${secretPrefix}\\w*|eyJ[\\w-]{8}[\\w.-]*`,
  'g',
);
/**
 * Finds whole ones, and what follows `Bearer`. Names such as `task_id` are
 * none.
 */
export const secretsInLines = new RegExp(
  `${secretPrefix}\\w{20,}|eyJ[\\w-]{8}[\\w.-]*|(?<=bearer +)[\\w.~+/-]{8,}`,
  'gi',
);
/** Begins the hint of a subject of the identity provider. */
export const subjectPrefix = 'sub_';
const alphabet =
  '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const randomDigits = 43;
const checksumDigits = 6;
const shape = new RegExp(
  `^${secretPrefix}[0-9A-Za-z]{${randomDigits + checksumDigits}}$`,
);

/** Minimum length of the bootstrap key. */
export const shortestBootstrapKey = 32;

export function createSecret() {
  const body =
    secretPrefix +
    base62(BigInt(`0x${randomBytes(32).toString('hex')}`), randomDigits);
  return body + checksum(body);
}

/** True when the format and the checksum of a secret are valid. */
export function isSecret(text: string) {
  return (
    shape.test(text) &&
    checksum(text.slice(0, -checksumDigits)) === text.slice(-checksumDigits)
  );
}

/**
 * Returns the SHA-256 of a secret, which is stored instead of the secret.
 * Look-ups compare hashes, so their timing does not leak the secret. 256 random
 * bits need no slow hash.
 */
export function hashSecret(secret: string) {
  return hash('sha256', secret, 'hex');
}

/** The part of a secret that may be shown. */
export function hintOf(secret: string) {
  return secret.slice(0, secretPrefix.length + 4);
}

function checksum(body: string) {
  return base62(BigInt(crc32(body)), checksumDigits);
}

function base62(value: bigint, length: number) {
  let text = '';
  for (let rest = value; rest > 0n; rest /= 62n)
    text = alphabet[Number(rest % 62n)] + text;
  return text.padStart(length, alphabet[0]);
}
