/**
 * Whether OpenTelemetry's standard variables name an OTLP endpoint or exporter. Empty values count as absent. This file
 * loads nothing of OpenTelemetry.
 *
 * @param onUnknown called with the name of an exporter other than `otlp` and `none`
 */
export function isTraced(env: NodeJS.ProcessEnv, onUnknown: (exporter: string) => void): boolean {
  if (env.OTEL_SDK_DISABLED?.toLowerCase() === 'true') return false;
  const { OTEL_TRACES_EXPORTER: exporter } = env;
  if (!exporter) return Boolean(env.OTEL_EXPORTER_OTLP_ENDPOINT || env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT);
  if (exporter !== 'otlp' && exporter !== 'none') onUnknown(exporter);
  return exporter === 'otlp';
}
