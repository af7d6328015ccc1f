import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

/**
 * Serves the service at the page's own address, so that the browser needs no
 * CORS.
 */
const proxy = { '/graphql': process.env.STORE_URL ?? 'http://127.0.0.1:4000' };

export default defineConfig({
  plugins: [react()],
  server: { host: '127.0.0.1', proxy },
  preview: { host: '127.0.0.1', proxy, strictPort: true },
});
