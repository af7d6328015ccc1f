import { StoreError } from '../../errors.ts';
import type { KeyScope } from './api-key.entity.ts';
import type { Caller } from './key-lookup.ts';

/** `write` includes `read`. */
export function hasScope(caller: Caller | null, scope: KeyScope): boolean {
  return caller?.scope === 'write' || caller?.scope === scope;
}

export function forbidden(scope: KeyScope): StoreError {
  return new StoreError('FORBIDDEN', `This needs an API key with the scope "${scope}".`);
}
