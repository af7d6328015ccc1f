/** The key is kept for this tab alone, until it is closed. */
const name = 'api-key';

export const rememberedKey = () => sessionStorage.getItem(name) ?? '';
export const rememberKey = (key: string) => sessionStorage.setItem(name, key);
export const forgetKey = () => sessionStorage.removeItem(name);
