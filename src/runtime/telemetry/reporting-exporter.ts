import { type ExportResult, ExportResultCode } from '@opentelemetry/core';
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace';
import type { Log } from './telemetry.ts';

/**
 * Says once when spans cannot be sent, and once when they can again: the SDK would say it for every batch, every five
 * seconds.
 */
export class ReportingExporter implements SpanExporter {
  #lost = 0;

  constructor(
    private readonly exporter: SpanExporter,
    private readonly log: Log,
  ) {}

  export(spans: ReadableSpan[], done: (result: ExportResult) => void): void {
    this.exporter.export(spans, (result) => {
      if (result.code === ExportResultCode.SUCCESS) this.#sent();
      else this.#failed(spans.length, result.error);
      done(result);
    });
  }

  shutdown(): Promise<void> {
    return this.exporter.shutdown();
  }

  #sent(): void {
    if (this.#lost > 0) this.log.info({ lost: this.#lost }, 'spans are sent again');
    this.#lost = 0;
  }

  #failed(count: number, error: Error | undefined): void {
    // Without the error itself, which has what the collector answered.
    if (this.#lost === 0)
      this.log.warn({ reason: error?.message || error?.name }, 'spans cannot be sent, and are lost');
    this.#lost += count;
  }
}
