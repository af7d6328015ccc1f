import { flag } from '../../config/variables.ts';
import { feature } from '../../feature.ts';

/** Serves assistants at `/mcp`, by the Model Context Protocol. */
export const assistants = feature({
  name: 'assistants',
  variables: {
    MCP: flag(false, 'Serves assistants at `/mcp` (assistants.md).'),
  },
  async start({ config, values }) {
    if (!values.MCP) return undefined;
    const { serveAssistants } = await import('./assistants.ts');
    return { http: (app, database) => serveAssistants(app, database, config) };
  },
});
