// Renders the guides (README.md and its neighbours, `docs/`) for `/guide`, as HTML in dist/guide. The build imports this
// file. It is not part of the service: only the build needs the Markdown parser.
import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { Marked } from 'marked';
import { gfmHeadingId } from 'marked-gfm-heading-id';

const root = join(import.meta.dirname, '..');
const home = 'README.md';
const sources = [
  home,
  'SECURITY.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  ...names('docs').map((name) => `docs/${name}`),
];
/** Each source with its address below `/guide`; the front page of the guides has none. */
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
const groups = groupsOf(readFileSync(join(root, home), 'utf8'));

const served = join(root, 'dist/guide');
const staging = join(root, 'dist/.guide');
rmSync(staging, { recursive: true, force: true });
mkdirSync(staging, { recursive: true });
for (const [path, name] of pages) writeFileSync(join(staging, `${name || 'index'}.html`), render(path, name));
cpSync(join(root, 'docs/images'), join(staging, 'images'), { recursive: true });
rmSync(served, { recursive: true, force: true });
renameSync(staging, served);

/** @returns {string} the page, with relative addresses, because a proxy may serve it below a prefix */
function render(path, name) {
  const text = readFileSync(join(root, path), 'utf8');
  const [, title = ''] = /^# (.+)$/m.exec(text) ?? [];
  const values = {
    title: name ? `${title} · Animal Store` : title,
    home: name ? '../' : './',
    top: name ? '../' : '',
    navigation: groups.map((group) => navigation(group, name)).join('\n'),
    content: linked(markdown().parse(text), path, name),
  };
  return template.replace(/%(\w+)%/g, (_, key) => values[key]);
}

/** GitHub's dialect and anchors. Blocks and tables scroll in themselves, also by keyboard. */
function markdown() {
  return new Marked(gfmHeadingId(), {
    renderer: {
      code({ text, lang }) {
        const shown = lang === 'mermaid' ? arrows(text) : text;
        return `<pre tabindex="0"><code>${escaped(shown)}</code></pre>\n`;
      },
    },
    hooks: {
      postprocess: (html) =>
        html.replace(/<table>[\s\S]*?<\/table>/g, (table) => `<div class="scroll" tabindex="0">${table}</div>`),
    },
  });
}

/** A flowchart as text: one arrow per line. Browsers would need a script of megabytes to draw it. */
function arrows(flowchart) {
  const labels = new Map([...flowchart.matchAll(/(\w+)[[(]+"([^"]+)"/g)].map(([, id, label]) => [id, label]));
  return flowchart
    .split('\n')
    .filter((line) => line.includes('-->'))
    .map((line) => line.trim().replace(/(\w+)(?:[[(]+"[^"]*"[\])]+)?/g, (_, id) => labels.get(id) ?? id))
    .map((line) => line.replaceAll('-->', '→'))
    .join('\n');
}

/** Rewrites links between guides. A link to another file, such as a source file, becomes text. */
function linked(html, path, name) {
  const place = (target) => normalize(join(dirname(path), target));
  return html
    .replace(/<a href="([^"]*)">([\s\S]*?)<\/a>/g, (link, href, text) => {
      if (/^(?:https:|#)/.test(href)) return link;
      const [target, anchor] = href.split('#');
      const page = pages.get(place(target));
      if (page !== undefined) return `<a href="${address(page, name)}${anchor ? `#${anchor}` : ''}">${text}</a>`;
      return /^\w+:/.test(href) ? text : `<span title="${place(target)}">${text}</span>`;
    })
    .replace(/(src|srcset)="([^"]+)"/g, (_, attribute, target) => {
      return `${attribute}="${name ? '' : 'guide/'}${relative('docs', place(target))}"`;
    });
}

function address(page, from) {
  return from ? page || '../guide' : `guide${page && `/${page}`}`;
}

/** The rows of README.md's last table, "Read on": readers, and the guides for them. */
function groupsOf(readme) {
  const [, table = ''] = readme.split('## Read on');
  return [...table.matchAll(/^\| (.+?) \| (.*\]\(.*) \|$/gm)].map(([, who, links]) => ({
    title: `You ${who}`,
    items: [...links.matchAll(/\[([^\]]+)\]\(([^)]+)\)/g)].filter(([, , path]) => pages.has(path)),
  }));
}

function navigation({ title, items }, current) {
  const links = items.map(([, text, path]) => {
    const page = pages.get(path);
    const here = page === current ? ' aria-current="page"' : '';
    return `<li><a href="${address(page, current)}"${here}>${escaped(text)}</a></li>`;
  });
  return `<h2>${escaped(title)}</h2>\n<ul>\n${links.join('\n')}\n</ul>`;
}

function names(folder) {
  return readdirSync(join(root, folder)).filter((name) => name.endsWith('.md'));
}

function escaped(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
