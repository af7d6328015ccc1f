// Renders the guides (README.md and its neighbours, `docs/`) for `/guide`, as
// HTML in dist/guide. The build runs this file. It is not part of the
// service: only the build needs the Markdown parser.
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { Marked } from 'marked';
import { gfmHeadingId } from 'marked-gfm-heading-id';
import { coloured, escaped, onLines } from './guide-code.mjs';
import { chaptersIn, textOf } from './guide-index.mjs';

const root = join(import.meta.dirname, '..');
const home = 'README.md';
const firstSteps = 'web/assets/first-steps.md';
const sources = [
  home,
  'SECURITY.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  ...names('docs').map((name) => `docs/${name}`),
];
/**
 * Each source with its address below `/guide`; the front page of the guides has
 * none.
 */
const pages = new Map(
  sources.map((path) => [
    path,
    path === home
      ? ''
      : path
          .replace(/^docs\//, '')
          .replace('.md', '')
          .toLowerCase(),
  ]),
);
const template = readFileSync(join(root, 'web/assets/guide.html'), 'utf8');
/** Other pages, and files of the repository that the service serves. */
const documents = new Map([
  ['./', './'],
  ['docs', 'docs'],
  ['schema/openapi.json', 'v1/openapi.json'],
  ['schema/schema.graphql', 'schema.graphql'],
]);
/** How code of some languages is laid out. */
const layouts = { json: onLines, mermaid: arrows };
const groups = groupsOf(readFileSync(join(root, home), 'utf8'));

const guides = [...pages].map(([path, name]) => guideOf(path, name));
const index = guides.map(({ path, name, title, content }) => ({
  address: address(name),
  title,
  weight: groups.at(-1).items.includes(path) ? 0.7 : 1,
  chapters: chaptersIn(content),
}));

const served = join(root, 'dist/guide');
const staging = join(root, 'dist/.guide');
rmSync(staging, { recursive: true, force: true });
mkdirSync(staging, { recursive: true });
for (const guide of guides)
  writeFileSync(join(staging, `${guide.name || 'index'}.html`), pageOf(guide));
writeFileSync(
  join(staging, 'search-index.js'),
  `export const guides = ${JSON.stringify(index)};\n`,
);
rmSync(served, { recursive: true, force: true });
renameSync(staging, served);

function guideOf(path, name) {
  const text = readFileSync(join(root, path), 'utf8');
  const html = markdown().parse(name ? text : forUsers(text));
  return {
    path,
    name,
    title: titleOf(path),
    content: linked(html, path, name),
  };
}

/**
 * @returns {string} the page, with relative addresses, because a proxy may
 *   serve it below a prefix
 */
function pageOf({ name, title, content }) {
  const values = {
    title: name ? `${title} · %service%` : title,
    top: name ? '../' : '',
    chapters: listOfChapters(content),
    navigation: groups.map((group) => navigation(group, name)).join('\n'),
    content,
  };
  return template.replace(/%(\w+)%/g, (place, key) => values[key] ?? place);
}

/** Readers of `/guide` have a service that runs, and the list of guides. */
function forUsers(readme) {
  const steps = readFileSync(join(root, firstSteps), 'utf8');
  const [about] = readme.split(/^```/m);
  const code = /^## Use\n\n```[\s\S]*?^```$/m.exec(readme)?.[0] ?? '';
  const others = readme
    .split(/^(?=## )/m)
    .filter((chapter) => /^## (?:Configure|Deploy)\n/.test(chapter));
  return [about, steps, code.replace(/.*\n/, ''), '\n\n', ...others].join('');
}

function titleOf(path) {
  return /^# (.+)$/m.exec(readFileSync(join(root, path), 'utf8'))?.[1] ?? path;
}

/** @returns {string} links to the chapters of a page that has several */
function listOfChapters(content) {
  const headings = [
    ...content.matchAll(/<h[23] id="([^"]+)">([\s\S]*?)<\/h([23])>/g),
  ];
  const large = headings.filter(([, , , level]) => level === '2');
  // A page of two parts has chapters in them.
  const chapters = large.length < 3 ? headings : large;
  if (chapters.length < 3) return '';
  const items = chapters.map(
    ([, id, title]) =>
      `<li><a href="#${id}">${title.replace(/<(?!wbr>)[^>]+>/g, '')}</a></li>`,
  );
  return `<nav class="chapters" aria-label="On this page">
<details open>
<summary>On this page</summary>
<ul>\n${items.join('\n')}\n</ul>
</details>
</nav>`;
}

/**
 * GitHub's dialect and anchors. Tables scroll in themselves, also by keyboard.
 */
function markdown() {
  return new Marked(gfmHeadingId(), {
    renderer: {
      code({ text, lang }) {
        const shown = layouts[lang]?.(text) ?? text;
        return `<pre><code>${coloured(shown, lang)}</code></pre>\n`;
      },
    },
    hooks: {
      postprocess: (html) =>
        breakable(withRows(html)).replace(
          /<table>[\s\S]*?<\/table>/g,
          (table) => `<div class="scroll" tabindex="0">${table}</div>`,
        ),
    },
  });
}

/**
 * Gives a row an address: the words of its first cell, if no other has it. An
 * item of a list that begins with bold words has theirs.
 */
function withRows(html) {
  const used = new Set(
    [...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id),
  );
  const beginning = /<(tr|li)>(\s*<(td|strong)>(.+?)<\/\3>)/g;
  return html.replace(beginning, (row, tag, start, _, words) => {
    const id = idOf(textOf(words));
    if (!id || used.has(id)) return row;
    used.add(id);
    return `<${tag} id="${id}">${start}`;
  });
}

function idOf(text) {
  const words = text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];
  return words.slice(0, 6).join('-');
}

/** Lines may end after each `_` of a heading and of a long code. */
function breakable(html) {
  return html.replace(
    /<h\d[^>]*>.*<\/h\d>|(?<!<pre>)<code>[^<]{20,}<\/code>/g,
    (text) => text.replace(/_(?=\w)(?![^<]*>)/g, '_<wbr>'),
  );
}

/**
 * A flowchart as text, with a long chain on several lines. Browsers would need
 * a script of megabytes to draw it.
 */
function arrows(flowchart) {
  const labels = new Map(
    [...flowchart.matchAll(/(\w+)[[(]+"([^"]+)"/g)].map(([, id, label]) => [
      id,
      label,
    ]),
  );
  return flowchart
    .split('\n')
    .filter((line) => line.includes('-->'))
    .map((line) =>
      line
        .trim()
        .replace(
          /(\w+)(?:[[(]+"[^"]*"[\])]+)?/g,
          (_, id) => labels.get(id) ?? id,
        ),
    )
    .map((line) => line.replaceAll('-->', '→'))
    .map((line) => (line.length > 80 ? line.replaceAll(' → ', '\n  → ') : line))
    .join('\n');
}

/**
 * Rewrites links between guides. A link to another file, such as a source file,
 * becomes text.
 */
function linked(html, path, name) {
  const place = (target) => normalize(join(dirname(path), target));
  return html.replace(
    /<a href="([^"]*)">([\s\S]*?)<\/a>/g,
    (link, href, text) => {
      if (/^(?:https:|#)/.test(href)) return link;
      const [target, anchor] = href.split('#');
      const document = documents.get(place(target));
      if (document)
        return `<a href="${name ? '../' : ''}${document}">${text}</a>`;
      const page = pages.get(place(target));
      if (page !== undefined)
        return `<a href="${address(page, name)}${anchor ? `#${anchor}` : ''}">${text}</a>`;
      return /^\w+:/.test(href)
        ? text
        : `<span title="${place(target)}">${text}</span>`;
    },
  );
}

function address(page, from) {
  return from ? page || '../guide' : `guide${page && `/${page}`}`;
}

/**
 * The rows of README.md's last table, "Read on": readers, and the guides for
 * them.
 */
function groupsOf(readme) {
  const [, table = ''] = readme.split('## Read on');
  return [...table.matchAll(/^\| (.+?) \| (.*\]\(.*) \|$/gm)].map(
    ([, who, links]) => ({
      title: `You ${who}`,
      items: [...links.matchAll(/\]\(([^)]+)\)/g)]
        .map(([, path]) => path)
        .filter((path) => pages.has(path)),
    }),
  );
}

function navigation({ title, items }, current) {
  const links = items.map((path) => {
    const page = pages.get(path);
    const here = page === current ? ' aria-current="page"' : '';
    return `<li><a href="${address(page, current)}"${here}>${escaped(titleOf(path))}</a></li>`;
  });
  return `<h2>${escaped(title)}</h2>\n<ul>\n${links.join('\n')}\n</ul>`;
}

function names(folder) {
  return readdirSync(join(root, folder)).filter((name) => name.endsWith('.md'));
}
