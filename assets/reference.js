/**
 * The REST reference: Swagger UI, taught to keep every digit of an int64.
 *
 * Swagger UI reads responses, requests and examples with `JSON.parse`, which rounds integers beyond 2^53, and writes them
 * with `JSON.stringify`. On this page the one returns such integers as `bigint`, and the other writes them digit by digit
 * (https://github.com/tc39/proposal-json-parse-with-source).
 */
const isExact = typeof JSON.rawJSON === 'function';

if (isExact) {
  const parse = JSON.parse;
  JSON.parse = (text, reviver) =>
    parse(text, function (key, value, context) {
      const exact = isRounded(value, context.source) ? BigInt(context.source) : value;
      return reviver ? reviver.call(this, key, exact, context) : exact;
    });
  BigInt.prototype.toJSON = function () {
    return JSON.rawJSON(`${this}`);
  };
}

/** Exponents and fractions stay what they are: they are no int64 as this service writes it. */
function isRounded(value, source) {
  return typeof value === 'number' && !Number.isSafeInteger(value) && /^-?\d+$/.test(source);
}

/** The document as this page shows it: with addresses behind whatever prefix a proxy has, and days of removal. */
function shown(api, root) {
  api.info.title = 'REST reference';
  for (const server of api.servers) server.url = new URL(server.url.replace(/^\//, ''), root).pathname;
  for (const operation of Object.values(api.paths).flatMap(Object.values)) {
    if (operation['x-sunset']) operation.summary += ` (until ${dayOf(operation['x-sunset'])})`;
  }
  return api;
}

function dayOf(date) {
  return new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeZone: 'UTC' }).format(new Date(date));
}

function say(id) {
  document.getElementById(id).hidden = false;
}

/**
 * Examples of the document, too. Swagger UI reads the document as YAML, and resolves it with a library that takes no
 * `bigint`: there, the digits are text, as they are in a field for a parameter; in a body they lose their quotes again.
 */
const digits = new Set();
const exactExamples = {
  statePlugins: {
    spec: {
      wrapActions: {
        parseToJson:
          (_original, { specActions, specSelectors }) =>
          (text) =>
            specActions.updateJsonSpec(JSON.parse(text ?? specSelectors.specStr(), asText)),
      },
    },
  },
  afterLoad() {
    const { getSampleSchema } = this.fn;
    this.fn.getSampleSchema = (...input) => asNumbers(getSampleSchema(...input));
  },
};

function asText(_key, value) {
  if (typeof value !== 'bigint') return value;
  digits.add(`"${value}"`);
  return `${value}`;
}

function asNumbers(sample) {
  if (typeof sample !== 'string') return sample;
  return sample.replace(/"-?\d+"/g, (one) => (digits.has(one) ? one.slice(1, -1) : one));
}

/** What Swagger UI leaves out for those who do not see the page, and what there is no choice of. */
const plainControls = ({ React: { createElement } }) => ({
  wrapComponents: {
    // A link inside of a button is neither.
    DeepLink:
      () =>
      ({ text }) =>
        createElement('span', null, text),
    TextArea: (Original) => (props) => createElement(Original, { 'aria-label': 'Body of the request', ...props }),
    // What a button is called is what is written on it (WCAG 2.5.3).
    Button:
      (Original) =>
      ({ 'aria-label': _label, ...props }) =>
        createElement(Original, props),
    CloseIcon: (Original) => (props) =>
      createElement(
        'span',
        null,
        createElement(Original, props),
        createElement('span', { className: 'unseen' }, 'Close'),
      ),
    ServersContainer: () => () => null,
  },
});

async function open() {
  const root = new URL('.', location.href);
  const response = await fetch(new URL('v1/openapi.json', root));
  const api = JSON.parse(await response.text());
  if (!isExact) say('rounds');
  SwaggerUIBundle({
    dom_id: '#reference',
    spec: shown(api, root),
    deepLinking: true,
    tryItOutEnabled: true,
    displayRequestDuration: true,
    validatorUrl: null,
    plugins: [exactExamples, plainControls],
  });
}

open().catch(() => say('failed'));
