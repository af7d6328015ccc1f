import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../config/config.ts';

/**
 * An HTML page and its Content-Security-Policy. Its links are relative: a proxy
 * may serve it below another path.
 */
export interface HtmlPage {
  html: string;
  policy: string;
}

/** Reads a file of `web/assets/`. */
export function asset(name: string): Buffer {
  return readFileSync(join(root, 'web/assets', name));
}

/**
 * Replaces the placeholders (`%name%`) of a page that have values.
 *
 * @param values HTML
 */
export function fill(page: string, values: Record<string, string>) {
  return page.replace(
    /%(\w+)%/g,
    (placeholder, name: string) => values[name] ?? placeholder,
  );
}

/** Creates a policy that allows only these sources. */
export function policyOf(...sources: string[]) {
  return [
    "default-src 'none'",
    ...sources,
    "base-uri 'none'",
    "form-action 'none'",
  ].join(';');
}

/**
 * Creates an element with data for scripts. It is not executed, so the policy
 * need not allow it.
 */
export function dataElement(id: string, data: unknown) {
  return `<script type="application/json" id="${id}">${JSON.stringify(data).replaceAll('<', '\\u003c')}</script>`;
}

/**
 * The style of a page, with the colours of all pages: the element, and its
 * source in the policy.
 */
export function styleOf(name: string) {
  const text = `${asset('static/theme.css')}${asset(name)}`;
  return {
    element: `<style>${text}</style>`,
    source: `style-src ${hashOf(text)}`,
  };
}

/**
 * The source expression of an inline script or style (Content Security Policy
 * Level 3, section 2.3.1).
 */
export function hashOf(text: string) {
  return `'sha256-${hash('sha256', text, 'base64')}'`;
}

const entities: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** A text in HTML. */
export function escaped(text: string) {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? '');
}
