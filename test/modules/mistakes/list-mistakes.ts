import { registerHooks } from 'node:module';

/** For `node --import`: the process has the modules of this folder. */
registerHooks({
  resolve(specifier, context, next) {
    const found = next(specifier, context);
    const isList = found.url.endsWith('/dist/src/modules.js');
    const url = new URL('modules.js', import.meta.url).href;
    return isList ? { ...found, url } : found;
  },
});
