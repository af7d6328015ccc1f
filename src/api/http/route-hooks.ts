import type { FastifyInstance, FastifySchema, RouteOptions } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { deprecationHooks } from '../../access/deprecations/deprecation.ts';
import type { DeprecationUsage } from '../../access/deprecations/usage.ts';
import { idempotencyHooks } from '../../access/idempotency/idempotency-key.ts';
import { requireScope } from '../../access/keys/bearer.ts';
import { quotaHooks } from '../../access/meter.ts';
import { origin } from './addresses.ts';
import { bodyHooks, dropUnvalidatedInput, parseJsonBodies } from './bodies.ts';
import type { MemoryBudget } from './memory-budget.ts';

export interface RouteHooksOptions {
  usage: DeprecationUsage;
  /** The budget of large bodies that are arriving. */
  bodies: MemoryBudget;
  /** Whether there is a quota. */
  isMetered: boolean;
  /** @returns the contract of a route */
  describe(route: RouteOptions, app: FastifyInstance): FastifySchema;
}

type Hooks = Pick<RouteOptions, 'preParsing' | 'preValidation' | 'onSend' | 'onResponse'>;
const phases = ['preParsing', 'preValidation', 'onSend', 'onResponse'] as const;

/**
 * Adds the service's hooks to every route that is registered later. Hooks of one phase run in the order of the list;
 * Fastify validates the input after all `preValidation` hooks.
 */
export const routeHooks = fastifyPlugin<RouteHooksOptions>(
  async (app: FastifyInstance, { usage, bodies, isMetered, describe }) => {
    parseJsonBodies(app);
    app.decorateRequest('claim', undefined);
    app.addHook('onRoute', function (route) {
      app.allowedMethods.add(route);
      requireScope(route);
      const hooksInOrder: Hooks[] = [
        bodyHooks(route, bodies),
        dropUnvalidatedInput(route),
        isMetered ? quotaHooks(route) : {},
        idempotencyHooks(route),
        deprecationHooks(route, usage, origin),
      ];
      // Fastify's own HEAD hook measures the content, so it must run after the compression.
      if (route.method === 'HEAD' && Array.isArray(route.onSend)) route.onSend.reverse();
      for (const phase of phases) {
        const hooks = [...hooksInOrder.map((hooks) => hooks[phase]), route[phase]]
          .flat()
          .filter((hook) => hook !== undefined);
        if (hooks.length > 0) route[phase] = hooks as never;
      }
      if (route.schema) route.schema = describe(route, this);
    });
  },
  { name: 'routeHooks', dependencies: ['addresses', 'meter'] },
);
