import type { Context, Tracer } from '@opentelemetry/api';
import type { FastifyRequest } from 'fastify';
import type { Log } from './telemetry.ts';

/** What OpenTelemetry's SDK gives to those who make spans. */
export interface Tracing {
  tracer: Tracer;
  /** The trace that a request belongs to, by its headers. */
  extract(headers: FastifyRequest['headers']): Context;
  /** Sends the last spans, within this time (ms). */
  close(milliseconds: number): Promise<void>;
}

/**
 * Starts OpenTelemetry's SDK, if its standard variables ask for that: an OTLP endpoint or exporter is named. Else not
 * even its code is loaded.
 */
export async function openTracing(env: NodeJS.ProcessEnv, version: string, log: Log): Promise<Tracing | undefined> {
  if (!isWanted(env, log)) return undefined;
  const { startSdk } = await import('./tracing.sdk.ts');
  return startSdk(env, version, log);
}

/** Empty values count as absent, as OpenTelemetry has it. */
function isWanted(env: NodeJS.ProcessEnv, log: Log): boolean {
  if (env.OTEL_SDK_DISABLED?.toLowerCase() === 'true') return false;
  const { OTEL_TRACES_EXPORTER: exporter } = env;
  if (!exporter) return Boolean(env.OTEL_EXPORTER_OTLP_ENDPOINT || env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT);
  const exporters = exporter.split(',').map((one) => one.trim());
  for (const unknown of exporters.filter((one) => one !== 'otlp' && one !== 'none')) {
    log.warn({ exporter: unknown }, 'OTEL_TRACES_EXPORTER: only otlp is known here');
  }
  return exporters.includes('otlp');
}
