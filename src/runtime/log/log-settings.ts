import type { FastifyInstance, FastifyPluginAsync } from 'fastify';
import { StoreError } from '../../errors.ts';
import { type LogControl, type LogSettings, logLevels } from './log-control.ts';
import { addressOf } from './request-log.ts';

const body = {
  type: 'object',
  additionalProperties: false,
  minProperties: 1,
  properties: { level: { enum: logLevels }, sample: { type: 'number', minimum: 0, maximum: 1 } },
};

/**
 * `GET /log` and `PUT /log`, on the port for operators: `{"level":"debug","sample":0.1}`, or one of the two. With
 * workers it holds for all of them. A restart goes back to the configuration.
 *
 * No key is needed, so no page in an operator's browser may get here. PUT and JSON take a preflight, which nobody
 * answers; and a page whose own name leads to this address (DNS rebinding) sends that name as the host.
 */
export function logSettings(control: LogControl): FastifyPluginAsync {
  return async (app: FastifyInstance) => {
    app.removeContentTypeParser('text/plain');
    app.addHook('onRequest', async ({ headers: { host = '' } }) => {
      if (!isAddress(host)) throw new StoreError('FORBIDDEN', 'Ask for this by address (127.0.0.1), not by name.');
    });
    app.get('/log', async () => control.settings);
    app.put<{ Body: Partial<LogSettings> }>('/log', { schema: { body } }, async (request) =>
      control.change(request.body, { address: addressOf(request) }),
    );
  };
}

/** `localhost` leads nowhere else in any browser. */
function isAddress(host: string): boolean {
  return /^(?:localhost|\d{1,3}(?:\.\d{1,3}){3}|\[[\da-f:.]+\])(?::\d{1,5})?$/i.test(host);
}
