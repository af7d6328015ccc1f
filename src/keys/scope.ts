import { StoreError } from '../errors.ts';
import type { KeyScope } from './api-key.entity.ts';
import type { Caller } from './key-lookup.ts';

/** `write` includes `read`. @throws StoreError FORBIDDEN */
export function assertScope(caller: Caller | null, scope: KeyScope): void {
  if (caller?.scope === 'write' || caller?.scope === scope) return;
  throw new StoreError('FORBIDDEN', `This needs an API key with the scope "${scope}".`);
}
