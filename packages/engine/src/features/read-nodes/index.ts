import {
  checkedPostgresUrl,
  commaSeparated,
  kind,
  whole,
} from '../../config/variables.ts';
import { feature, type Metric } from '../../feature.ts';

const postgresUrls = kind('postgres:// addresses', (text) =>
  commaSeparated(text).map(checkedPostgresUrl),
);

/** Nodes of PostgreSQL that answer reads in place of the primary. */
export const readNodes = feature({
  name: 'read-nodes',
  variables: {
    DATABASE_READ_URLS: postgresUrls(
      undefined,
      'PostgreSQL nodes that answer reads, separated by commas (scale.md).',
      'DATABASE_URL',
    ),
    READ_MAX_LAG_MS: whole(1000, 3_600_000)(
      1000,
      'Longest lag of a replica that answers reads (scale.md).',
    ),
  },
  checks({ values }, { options, model }) {
    const { DATABASE_READ_URLS: urls = [], READ_MAX_LAG_MS: maxLag } = values;
    const remedy =
      'start the node, or remove it from DATABASE_READ_URLS; until then the primary answers its reads';
    return urls.map((url) => ({
      name: `read node ${new URL(url).host}`,
      remedy,
      state: 'warning',
      async run() {
        const { lagOf } = await import('./replicas.ts');
        const lag = await lagOf({ ...options, url, log: undefined }, model);
        const found = `${Math.ceil(lag)} ms behind`;
        if (lag < maxLag) return found;
        throw new Error(`${found}, not less than READ_MAX_LAG_MS`);
      },
    }));
  },
  async start({ values, config, log }) {
    const { DATABASE_READ_URLS: urls, READ_MAX_LAG_MS: maxLag } = values;
    const sent = new Map<string, number>();
    const count = (node: string) => sent.set(node, (sent.get(node) ?? 0) + 1);
    const reads: Metric = {
      name: 'service_read_node_reads_total',
      help: 'Reads sent to each server.',
      labels: ['node'],
      read: () => [...sent].map(([node, reads]) => [reads, node]),
    };
    if (!urls) return { metrics: [reads] };
    const { Replicas } = await import('./replicas.ts');
    const options = { ...config.database, maxLag, log };
    return {
      metrics: [reads],
      reads: (primary) => new Replicas(urls, primary, options, count),
    };
  },
});
