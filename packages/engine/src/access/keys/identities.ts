import type { Caller } from '../../call.ts';

/** A person or a program without a key of ours. */
export interface Identity {
  /** Where it is known. */
  readonly issuer: string;
  /** Names it: SHA-256, in hexadecimal. */
  readonly hash: string;
  /** What the secret says of its caller. */
  readonly caller: Pick<
    Caller,
    'hint' | 'subject' | 'tenant' | 'scopes' | 'scopeNames'
  >;
  /** When the secret expires (`performance.now()`). */
  readonly validUntil: number;
}

/** Knows callers without a key of ours. */
export interface Identities {
  /** True for the form of its secrets. */
  matches(secret: string): boolean;
  /**
   * @param digest the SHA-256 of the secret
   * @returns the identity; for a secret that its issuer has not made, why it is
   *   refused
   * @throws StoreError UNAUTHENTICATED for one that is for another service or
   *   time; SERVICE_UNAVAILABLE while it cannot be verified
   */
  verify(secret: string, digest: string): Promise<Identity | string>;
}
