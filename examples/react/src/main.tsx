import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { App } from './App.tsx';
import { LoggedIn } from './LoggedIn.tsx';
import { hasLogin } from './login.ts';
import './style.css';

createRoot(document.getElementById('root') as HTMLElement).render(
  <StrictMode>{hasLogin ? <LoggedIn /> : <App />}</StrictMode>,
);
