/**
 * The REST reference: Swagger UI, changed so that it keeps every digit of an
 * int64.
 *
 * Swagger UI reads responses, requests and examples with `JSON.parse`, which
 * rounds integers beyond 2^53, and writes them with `JSON.stringify`. On this
 * page the one returns such integers as `bigint`, and the other writes them
 * digit by digit (https://github.com/tc39/proposal-json-parse-with-source).
 */
import { copyBefore } from './copy.js';
import { forgetKey, rememberedKey, rememberKey } from './key.js';

const isExact = typeof JSON.rawJSON === 'function';

if (isExact) {
  const parse = JSON.parse;
  JSON.parse = (text, reviver) =>
    parse(text, function (key, value, context) {
      const exact = isRounded(value, context.source)
        ? BigInt(context.source)
        : value;
      return reviver ? reviver.call(this, key, exact, context) : exact;
    });
  BigInt.prototype.toJSON = function () {
    return JSON.rawJSON(`${this}`);
  };
}

/**
 * False for exponents and fractions: the service writes an int64 without them.
 */
function isRounded(value, source) {
  return (
    typeof value === 'number' &&
    !Number.isSafeInteger(value) &&
    /^-?\d+$/.test(source)
  );
}

/**
 * The document as this page shows it: with whole addresses, also below the
 * prefix of a proxy, and days of removal.
 */
function shown(api, root) {
  api.info.title = 'REST reference';
  // Paths are shown as a client calls them, with `/v1`.
  const [base] = /\/v\d+$/.exec(api.servers[0].url);
  const address = root.href.replace(/\/$/, '');
  api.info.description += `\n\nAddress: \`${address}${base}\` ([OpenAPI document](v1/openapi.json))`;
  api.servers = [{ url: address }];
  api.paths = Object.fromEntries(
    Object.entries(api.paths).map(([path, item]) => [base + path, item]),
  );
  for (const operation of Object.values(api.paths).flatMap(Object.values)) {
    if (operation['x-sunset'])
      operation.summary += ` (until ${dayOf(operation['x-sunset'])})`;
  }
  if (isExact) Object.values(api.components.schemas).forEach(showDigits);
  return api;
}

/** An int64 has an example that a double cannot hold, but for ids. */
function showDigits({ properties = {}, examples: [example] = [] }) {
  for (const [name, { format, examples }] of Object.entries(properties)) {
    if (format !== 'int64' || !examples || name === 'id') continue;
    examples[0] = 2n ** 53n + 1n;
    if (example) [example[name]] = examples;
  }
}

function dayOf(date) {
  return new Intl.DateTimeFormat('en-GB', {
    dateStyle: 'long',
    timeZone: 'UTC',
  }).format(new Date(date));
}

function say(id) {
  document.getElementById(id).hidden = false;
}

/**
 * Examples of the document, too. Swagger UI reads the document as YAML, and
 * resolves it with a library that takes no `bigint`: there, the digits are
 * text, as they are in a field for a parameter; in a body they lose their
 * quotes again.
 */
const digits = new Set();
const exactExamples = {
  statePlugins: {
    spec: {
      wrapActions: {
        parseToJson:
          (_original, { specActions, specSelectors }) =>
          (text) =>
            specActions.updateJsonSpec(
              JSON.parse(text ?? specSelectors.specStr(), asText),
            ),
      },
    },
  },
  afterLoad() {
    const { getSampleSchema } = this.fn;
    this.fn.getSampleSchema = (...input) =>
      asNumbers(getSampleSchema(...input));
  },
};

function asText(_key, value) {
  if (typeof value !== 'bigint') return value;
  digits.add(`"${value}"`);
  return `${value}`;
}

function asNumbers(sample) {
  if (typeof sample !== 'string') return sample;
  return sample.replace(/"-?\d+"/g, (one) =>
    digits.has(one) ? one.slice(1, -1) : one,
  );
}

/**
 * Adds names that screen readers need and Swagger UI lacks, and removes the
 * choice of servers (there is one) and the curl.
 */
const plainControls = ({ React: { createElement } }) => ({
  wrapComponents: {
    // A button must not contain a link.
    DeepLink:
      () =>
      ({ text }) =>
        createElement('span', null, text),
    TextArea: (Original) => (props) =>
      createElement(Original, {
        'aria-label': 'Body of the request',
        ...props,
      }),
    // A list of choices has no placeholder that would name it.
    JsonSchema_string: (Original) => (props) => {
      const field = createElement(Original, props);
      if (!props.schema?.has('enum')) return field;
      return createElement(
        'label',
        null,
        createElement('span', { className: 'unseen' }, props.description),
        field,
      );
    },
    // The name of a button is its text (WCAG 2.5.3).
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
    InfoContainer: (Original) => (props) =>
      createElement(
        'section',
        { 'aria-label': 'About' },
        createElement(Original, props),
      ),
    ServersContainer: () => () => null,
    // Of a list it says `array<any>`.
    JSONSchema202012KeywordType: (Original) => (props) => {
      const [, item] = /([^/]+)$/.exec(props.schema.items?.$ref ?? '') ?? [];
      const className = 'json-schema-2020-12__attribute';
      return item
        ? createElement('strong', { className }, `array of ${item}`)
        : createElement(Original, props);
    },
    // It would show the key; the samples are the same request without it.
    curl: () => () => null,
    // The sections are headings of the third level.
    operations: (Original) => (props) =>
      createElement(
        'div',
        null,
        createElement('h2', { className: 'unseen' }, 'Operations'),
        createElement(Original, props),
      ),
  },
});

/** Shares the key with the other pages of the tab. */
const sharedKey = {
  statePlugins: {
    auth: {
      wrapActions: {
        authorize: (original) => (entered) => {
          if (entered.apiKey) rememberKey(entered.apiKey.value);
          return original(entered);
        },
        logout: (original) => (names) => {
          forgetKey();
          return original(names);
        },
      },
    },
  },
};

/** Folds away request headers, which few requests need, and failures. */
const folded = ({ React: { createElement: h } }) => {
  const fold = (row, title, className) => {
    const details = h(
      'details',
      null,
      h('summary', null, title),
      h('table', { className }, h('tbody', null, row)),
    );
    return h('tr', { className: 'folded' }, h('td', { colSpan: 3 }, details));
  };
  return {
    wrapComponents: {
      parameterRow: (Original) => (props) => {
        const row = h(Original, props);
        const isHeader = props.rawParam.get('in') === 'header';
        return isHeader
          ? fold(row, `Header ${props.rawParam.get('name')}`, 'parameters')
          : row;
      },
      response: (Original) => (props) => {
        const row = h(Original, props);
        return /^2/.test(props.code)
          ? row
          : fold(
              row,
              `${props.code} ${props.response.get('description')}`,
              'responses-table',
            );
      },
    },
  };
};

/** Samples stand above the responses. */
const samples = ({ React: { createElement: h } }) => ({
  wrapComponents: {
    responses: (Original) => (props) => {
      const [first, ...others] = Object.entries(samplesOf(requestOf(props)));
      const sample = ([language, text], isOpen) =>
        h(
          'details',
          {
            key: language,
            name: `sample-${props.method}-${props.path}`,
            open: isOpen,
          },
          h('summary', null, language),
          h(
            'div',
            { className: 'code' },
            h('pre', { tabIndex: 0 }, text),
            h(
              'button',
              {
                type: 'button',
                className: 'copy',
                onClick: (event) => copyBefore(event.target),
              },
              'Copy',
            ),
          ),
        );
      const list = [
        sample(first, true),
        ...others.map((one) => sample(one, false)),
      ];
      return h(
        'div',
        null,
        h('div', { className: 'samples' }, h('h4', null, 'Samples'), list),
        h(Original, props),
      );
    },
  },
});

/** The request of an operation, as its fields are filled in. */
function requestOf({ path, method, specSelectors, oas3Selectors }) {
  const values = specSelectors.parameterValues([path, method]);
  const query = new URLSearchParams();
  const headers = {};
  let filled = path;
  for (const parameter of specSelectors
    .operationWithMeta(path, method)
    .get('parameters', [])) {
    const [name, place] = [parameter.get('name'), parameter.get('in')];
    const value = values.find(
      (_value, key) =>
        key.startsWith(`${place}.${name}.`) || key === `${place}.${name}`,
    );
    if (value === undefined || value === '') continue;
    if (place === 'path')
      filled = filled.replace(`{${name}}`, encodeURIComponent(value));
    if (place === 'query') query.append(name, value);
    if (place === 'header') headers[name] = `${value}`;
  }
  const body = oas3Selectors.requestBodyValue(path, method);
  if (body) headers['Content-Type'] = 'application/json';
  const url =
    specSelectors.specJson().getIn(['servers', 0, 'url']) +
    filled +
    (query.size > 0 ? `?${query}` : '');
  return {
    method: method.toUpperCase(),
    url,
    headers,
    body: body && compact(body),
  };
}

function compact(body) {
  try {
    return isExact ? JSON.stringify(JSON.parse(body)) : body;
  } catch {
    return body;
  }
}

/**
 * The request in several languages. None contains the key, and none rounds an
 * int64.
 */
function samplesOf({ method, url, headers, body }) {
  const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;
  const literal = (text) => JSON.stringify(text);
  const others = Object.entries(headers);
  const curl = [
    `curl ${quoted(url)}`,
    '-H "Authorization: Bearer $KEY"',
    ...others.map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
    ...(body ? [`-d ${quoted(body)}`] : []),
  ];
  const javaScript = [
    `const response = await fetch(${literal(url)}, {`,
    ...(method === 'GET' ? [] : [`  method: '${method}',`]),
    '  headers: {',
    '    Authorization: "Bearer " + key,',
    ...others.map(
      ([name, value]) => `    ${literal(name)}: ${literal(value)},`,
    ),
    '  },',
    ...(body ? [`  body: ${literal(body)},`] : []),
    '});',
    '// As text: JSON.parse rounds integers beyond 2^53.',
    'console.log(response.status, await response.text());',
  ];
  const python = [
    'import json, urllib.request',
    '',
    'request = urllib.request.Request(',
    `    ${literal(url)},`,
    `    method="${method}",`,
    '    headers={',
    '        "Authorization": f"Bearer {key}",',
    ...others.map(
      ([name, value]) => `        ${literal(name)}: ${literal(value)},`,
    ),
    '    },',
    ...(body ? [`    data=${literal(body)}.encode(),`] : []),
    ')',
    'with urllib.request.urlopen(request) as response:',
    '    print(response.status, json.load(response))',
  ];
  return {
    curl: curl.join(' \\\n  '),
    JavaScript: javaScript.join('\n'),
    Python: python.join('\n'),
  };
}

/** The list of operations beside them. */
function listOperations(api) {
  const links = Object.entries(api.paths).flatMap(([path, item]) =>
    Object.entries(item).map(
      ([
        method,
        {
          tags: [tag],
          operationId,
          deprecated,
        },
      ]) => {
        const link = document.createElement('a');
        link.href = `#/${tag}/${operationId}`;
        const name = document.createElement('span');
        name.textContent = method.toUpperCase();
        link.append(name, ` ${path}`);
        if (deprecated) link.className = 'deprecated';
        return link;
      },
    ),
  );
  document.getElementById('contents').append(...links);
}

async function open() {
  const root = new URL('.', location.href);
  const response = await fetch(new URL('v1/openapi.json', root));
  const api = shown(JSON.parse(await response.text()), root);
  if (!isExact) say('rounds');
  listOperations(api);
  const ui = SwaggerUIBundle({
    dom_id: '#reference',
    spec: api,
    deepLinking: true,
    tryItOutEnabled: true,
    displayRequestDuration: true,
    validatorUrl: null,
    plugins: [exactExamples, plainControls, sharedKey, folded, samples],
    onComplete: () =>
      rememberedKey() && ui.preauthorizeApiKey('apiKey', rememberedKey()),
  });
  addEventListener('hashchange', () =>
    ui.layoutActions.parseDeepLinkHash(location.hash),
  );
}

open().catch(() => say('failed'));
