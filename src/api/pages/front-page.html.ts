import type { PageLink } from './links.ts';

/** What the service says of itself. */
export interface About {
  name: string;
  version: string;
  description: string;
  links: PageLink[];
}

export interface Frame {
  /** Of the service, as the client used it. */
  address: string;
  style: string;
  /** An SVG element. */
  icon: string;
}

/** The front page. Its links are relative, so that they hold behind a proxy that strips a prefix. */
export function frontPageHtml({ name, version, description, links }: About, { address, style, icon }: Frame): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="description" content="${escaped(description)}">
<title>${escaped(name)}</title>
<link rel="icon" href="favicon.ico">
<style>${style}</style>
</head>
<body>
<header>
${icon}
<h1>${escaped(name)} <span class="version">${escaped(version)}</span></h1>
<p>${escaped(description)} It speaks REST and GraphQL; ids are int64, exact to the last digit on both.</p>
</header>
<main>
${Object.entries(Object.groupBy(links, ({ group }) => group))
  .map(sectionOf)
  .join('\n')}
<section aria-labelledby="key">
<h2 id="key">Get a key</h2>
<p>The first start on a store of its own prints one. Whoever runs the service issues more:</p>
${code('npm run store -- keys issue --name me')}
<p>In a container: <code>animal-store keys issue --name me</code></p>
</section>
<section aria-labelledby="call">
<h2 id="call">Call it</h2>
${code(`KEY=ask_...   # your key

# REST
curl -H "Authorization: Bearer $KEY" \\
  ${address}/v1/pets

# GraphQL
curl -H "Authorization: Bearer $KEY" \\
  -H 'Content-Type: application/json' \\
  -d '{"query":"{ pets { id name } }"}' \\
  ${address}/graphql`)}
</section>
</main>
</body>
</html>
`;
}

function sectionOf([group, links = []]: [string, PageLink[] | undefined]): string {
  const id = escaped(group.toLowerCase());
  return `<section aria-labelledby="${id}">
<h2 id="${id}">${escaped(group)}</h2>
<ul class="links">
${links.map(itemOf).join('\n')}
</ul>
</section>`;
}

function itemOf({ path, title, text }: PageLink): string {
  const link = `<a href="${escaped(path.slice(1))}">${escaped(title)}</a>`;
  return `<li>${link}<code>${escaped(path)}</code><p>${escaped(text)}</p></li>`;
}

// A block that scrolls must be reachable by the keyboard.
function code(text: string): string {
  return `<pre tabindex="0"><code>${escaped(text)}</code></pre>`;
}

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? '');
}
