import { feature } from '../../feature.ts';

/** Spans of requests, operations and round trips (docs/observe.md). */
export const traces = feature({
  name: 'traces',
  async start({ config, log }) {
    const isOn = isTraced(process.env, (exporter) =>
      log.warn({ exporter }, 'OTEL_TRACES_EXPORTER: only otlp is known here'),
    );
    if (!isOn) return undefined;
    const { startTracing } = await import('./traces.ts');
    return startTracing(config, log);
  },
});

/**
 * Whether OpenTelemetry's standard variables name an OTLP endpoint or exporter.
 * Empty values count as absent.
 *
 * @param onUnknown called with the name of an exporter other than `otlp` and
 *   `none`
 */
export function isTraced(
  env: NodeJS.ProcessEnv,
  onUnknown: (exporter: string) => void,
): boolean {
  if (env.OTEL_SDK_DISABLED?.toLowerCase() === 'true') return false;
  const { OTEL_TRACES_EXPORTER: exporter } = env;
  if (!exporter)
    return Boolean(
      env.OTEL_EXPORTER_OTLP_ENDPOINT || env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT,
    );
  if (exporter !== 'otlp' && exporter !== 'none') onUnknown(exporter);
  return exporter === 'otlp';
}
