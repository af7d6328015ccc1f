import { type Attributes, type Context, type Link, type SpanKind, TraceFlags } from '@opentelemetry/api';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  type Sampler,
  SamplingDecision,
  type SamplingResult,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace';
import type { Log } from './telemetry.ts';

/** The sampler that OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG name, by default `parentbased_always_on`. */
export function samplerOf({ OTEL_TRACES_SAMPLER, OTEL_TRACES_SAMPLER_ARG }: NodeJS.ProcessEnv, log: Log): Sampler {
  const ratio = new TraceIdRatioBasedSampler(ratioOf(OTEL_TRACES_SAMPLER_ARG));
  const [on, off] = [new AlwaysOnSampler(), new AlwaysOffSampler()];
  const samplers: Record<string, Sampler> = {
    always_on: on,
    always_off: off,
    traceidratio: ratio,
    parentbased_always_on: new ParentBasedSampler({ root: on }),
    parentbased_always_off: new ParentBasedSampler({ root: off }),
    parentbased_traceidratio: new ParentBasedSampler({ root: ratio }),
  };
  const name = OTEL_TRACES_SAMPLER || 'parentbased_always_on';
  if (!Object.hasOwn(samplers, name)) log.warn({}, 'OTEL_TRACES_SAMPLER has an unknown value: all is sampled');
  return new LinkSampler(samplers[name] ?? (samplers.parentbased_always_on as Sampler));
}

function ratioOf(text: string | undefined): number {
  const ratio = Number(text || 1);
  return ratio >= 0 && ratio <= 1 ? ratio : 1;
}

/** A span that is linked to sampled ones is sampled, too: it is part of their stories. */
class LinkSampler implements Sampler {
  constructor(private readonly others: Sampler) {}

  shouldSample(
    context: Context,
    traceId: string,
    name: string,
    kind: SpanKind,
    attributes: Attributes,
    links: Link[],
  ): SamplingResult {
    const isPart = links.some((link) => (link.context.traceFlags & TraceFlags.SAMPLED) !== 0);
    if (isPart) return { decision: SamplingDecision.RECORD_AND_SAMPLED };
    return this.others.shouldSample(context, traceId, name, kind, attributes, links);
  }

  toString(): string {
    return `Links{${this.others}}`;
  }
}
