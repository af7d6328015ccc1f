import { kind, text } from '../../config/variables.ts';
import { feature } from '../../feature.ts';

// Without a scheme the SDK sends to localhost:4318. A path may be a secret.
const collector = kind(
  'an http:// or https:// address',
  (given) => {
    const isAddress = /^https?:\/\/[^/]/i.test(given) && URL.canParse(given);
    if (isAddress) return given;
    throw new Error('must be an http:// or https:// address');
  },
  true,
);

/** Those of OpenTelemetry that switch it on; the SDK reads the others. */
const switches = {
  OTEL_EXPORTER_OTLP_ENDPOINT: collector(
    undefined,
    'Collector of traces, by OTLP over HTTP (observe.md).',
  ),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: collector(
    undefined,
    'The same, with the path (observe.md).',
  ),
  OTEL_TRACES_EXPORTER: text(
    undefined,
    '`otlp` sends traces, `none` does not (observe.md).',
  ),
  OTEL_SDK_DISABLED: text(undefined, '`true`: no traces (observe.md).'),
};

/** Spans of requests, operations and round trips (docs/observe.md). */
export const traces = feature({
  name: 'traces',
  variables: switches,
  async start({ config, values, log }) {
    const isOn = isTraced(values, (exporter) =>
      log.warn({ exporter }, 'OTEL_TRACES_EXPORTER: only otlp is known here'),
    );
    if (!isOn) return undefined;
    const { startTracing } = await import('./traces.ts');
    return startTracing(config, log);
  },
});

/**
 * Whether the variables name an OTLP endpoint or exporter.
 *
 * @param onUnknown called with the name of an exporter other than `otlp` and
 *   `none`
 */
export function isTraced(
  values: Partial<Record<keyof typeof switches, string | undefined>>,
  onUnknown: (exporter: string) => void,
) {
  if (values.OTEL_SDK_DISABLED?.toLowerCase() === 'true') return false;
  const { OTEL_TRACES_EXPORTER: exporter } = values;
  const endpoint =
    values.OTEL_EXPORTER_OTLP_ENDPOINT ||
    values.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT;
  if (!exporter) return Boolean(endpoint);
  if (exporter !== 'otlp' && exporter !== 'none') onUnknown(exporter);
  return exporter === 'otlp';
}
