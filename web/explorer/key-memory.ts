/** The key is stored for this tab only, until the tab is closed. */
const name = 'api-key';

export const rememberedKey = () => sessionStorage.getItem(name) ?? '';
export const rememberKey = (key: string) => sessionStorage.setItem(name, key);
export const forgetKey = () => sessionStorage.removeItem(name);
