// Code in the guides: colours, which the build adds, and JSON on several lines.

const string = /"(?:\\.|[^"\\])*"/;
const number = /(?<![\w.])-?\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?n?\b/;
/** These words, unless they name a member. */
const words = (list) =>
  new RegExp(`(?<![\\w.$])(?:${list.replaceAll(' ', '|')})\\b(?!\\s*:)`);

/**
 * The classes of the parts of each language. Of two parts that begin at the
 * same place, the first one counts.
 */
const grammars = {
  json: {
    name: /"(?:\\.|[^"\\])*"(?=\s*:)/,
    string,
    number,
    keyword: words('true false null'),
  },
  sh: {
    comment: /(?<=^|\s)#.*/,
    string: /"(?:\\[\s\S]|[^"\\])*"|'[^']*'/,
    name: /\$(?:\w+|\{[^}]*\})|(?<=^[ \t]*|\bexport |; )[A-Z_][A-Z\d_]*(?==)/,
    option: /(?<=\s)--?[A-Za-z][\w-]*/,
    keyword:
      /(?<=^[ \t]*|[;|&] *)(?:do|done|else|export|fi|for|if|then|while)\b/,
  },
  ts: {
    comment: /\/\/.*|\/\*[\s\S]*?\*\//,
    string: /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\[\s\S]|[^`\\])*`/,
    keyword: words(
      'as async await catch class const else export extends false finally for from function if implements import in interface let new null of private readonly return static switch this throw true try type typeof undefined void while yield',
    ),
    name: /@\w+|\b[A-Z]\w*[a-z]\w*\b/,
    number,
  },
  graphql: {
    comment: /#.*/,
    string,
    keyword: words(
      'enum false fragment input mutation null on query subscription true type',
    ),
    name: /[$@]\w+|\b[A-Z]\w*\b/,
    number,
  },
};
const aliases = { js: 'ts', tsx: 'ts', jsx: 'ts' };

/**
 * @param {string} text
 * @param {string} [language] the word after the fence
 * @returns {string} HTML
 */
export function coloured(text, language = '') {
  const grammar = grammars[aliases[language] ?? language];
  if (!grammar) return escaped(text);
  const parts = Object.entries(grammar).map(
    ([name, { source }]) => `(?<${name}>${source})`,
  );
  let html = '';
  let end = 0;
  for (const { index, groups } of text.matchAll(
    new RegExp(parts.join('|'), 'gm'),
  )) {
    const [name, part] = Object.entries(groups).find(([, found]) => found);
    html += `${escaped(text.slice(end, index))}<span class="${name}">${escaped(part)}</span>`;
    end = index + part.length;
  }
  return html + escaped(text.slice(end));
}

/** The longest line of JSON that is not broken. */
const width = 72;

/**
 * Breaks a JSON document on one line. What fits on a line stays on it, and
 * every value is written as in the text: no number is rounded.
 */
export function onLines(text) {
  if (text.includes('\n')) return text;
  try {
    const value = JSON.parse(text, (_key, member, { source }) =>
      source === undefined ? member : JSON.rawJSON(source),
    );
    return linesOf(value, '', true);
  } catch {
    return text;
  }
}

function linesOf(value, indent, isOuter = false) {
  const isLeaf = JSON.isRawJSON(value);
  const members = isLeaf ? [] : Object.entries(value);
  if (members.length === 0) return JSON.stringify(value);
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
  const textsOf = (inner) =>
    members.map(([key, member]) => {
      const text = linesOf(member, inner);
      return Array.isArray(value) ? text : `${JSON.stringify(key)}: ${text}`;
    });
  const room = open === '{' ? ' ' : '';
  const line = `${open}${room}${textsOf('').join(', ')}${room}${close}`;
  const fits = !line.includes('\n') && indent.length + line.length <= width;
  if (fits && !isOuter) return line;
  const inner = `${indent}  `;
  const lines = textsOf(inner).map((text) => `${inner}${text}`);
  return `${open}\n${lines.join(',\n')}\n${indent}${close}`;
}

export function escaped(text) {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;');
}
