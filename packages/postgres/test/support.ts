import type * as jest from '@jest/globals';

// `jest-light-runner` runs tests in plain Node.js, where Jest's functions are globals.
export const { describe, expect, test } = globalThis as unknown as typeof jest;
