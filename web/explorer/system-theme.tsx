import { pick, useGraphiQL, useGraphiQLActions } from '@graphiql/react';
import { useEffect } from 'react';

/**
 * Renders nothing. Updates the editors when the system switches between light
 * and dark, as the rest of the page does.
 */
export function SystemTheme() {
  const { theme } = useGraphiQL(pick('theme'));
  const { setTheme } = useGraphiQLActions();
  useEffect(() => {
    const system = matchMedia('(prefers-color-scheme: dark)');
    const follow = () => setTheme(theme);
    system.addEventListener('change', follow);
    return () => system.removeEventListener('change', follow);
  }, [theme, setTheme]);
  return null;
}
