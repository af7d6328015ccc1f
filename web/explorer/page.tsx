import './workers.ts';
import 'graphiql/style.css';
import '@graphiql/plugin-explorer/style.css';
import './page.css';
import { createRoot } from 'react-dom/client';
import type { Example } from './example-menu.tsx';
import { Explorer } from './explorer.tsx';

const at = (id: string) => document.getElementById(id) as HTMLElement;
const examples: Example[] = JSON.parse(at('examples').textContent ?? '');

createRoot(at('root')).render(<Explorer examples={examples} />);
