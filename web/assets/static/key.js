/**
 * The API key that a user has entered on one of the pages. All pages of the tab
 * share it (`web/explorer/key-memory.ts` and `sandbox.js` use the same name).
 * It ends with the tab, and is sent to this service only.
 */
const name = 'api-key';

export const rememberedKey = () => sessionStorage.getItem(name) ?? '';
export const rememberKey = (key) => sessionStorage.setItem(name, key);
export const forgetKey = () => sessionStorage.removeItem(name);

/** The address of the service, also below the prefix of a proxy. */
export const root = new URL('../..', import.meta.url);

/** Sends a request with the key. */
export function call(path, { headers, ...options } = {}) {
  return fetch(new URL(path, root), {
    ...options,
    headers: { authorization: `Bearer ${rememberedKey()}`, ...headers },
  });
}
