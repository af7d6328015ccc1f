import { CreatePetAndApiKey } from './2026_11_20_120000_create_pet_and_api_key.ts';
import { CreateDeprecatedCall } from './2026_11_20_130000_create_deprecated_call.ts';

/** All migrations, in the order in which they are applied. A released one is never edited. */
export const migrations = [
  { name: '2026_11_20_120000_create_pet_and_api_key', class: CreatePetAndApiKey },
  { name: '2026_11_20_130000_create_deprecated_call', class: CreateDeprecatedCall },
];
