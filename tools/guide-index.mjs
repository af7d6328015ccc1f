// The index of the guides: what a search on their pages reads.

/** The end of a paragraph, an item, a row or a block of code. */
const blockEnd = /<\/(?:p|li|tr|pre)>/;

/**
 * @typedef {[text: string, id?: string]} Block rows, and items with
 *   bold words, have an address of their own
 * @param {string} content the HTML of a guide
 * @returns {[id: string, heading: string, blocks: Block[]][]} its chapters
 */
export function chaptersIn(content) {
  return content
    .split(/(?=<h[1-4] id=")/)
    .map((chapter) => /^<h\d id="([^"]+)">(.*?)<\/h\d>([\s\S]*)/.exec(chapter))
    .filter(Boolean)
    .map(([, id, heading, rest]) => [id, textOf(heading), blocksOf(rest)]);
}

function blocksOf(html) {
  return html
    .split(blockEnd)
    .map((block) => {
      const [, id] = /<(?:tr|li) id="([^"]+)">/.exec(block) ?? [];
      return id ? [textOf(block), id] : [textOf(block)];
    })
    .filter(([text]) => text);
}

/** The text of HTML on one line, with a dot between the cells of a row. */
export function textOf(html) {
  return html
    .replace(/<\/t[dh]>\s*<t[dh][^>]*>/g, ' · ')
    .replace(/<[^>]+>/g, '')
    .replace(/&(lt|gt|quot|#39|amp);/g, (_, name) => entities[name])
    .replace(/\s+/g, ' ')
    .trim();
}

const entities = { lt: '<', gt: '>', quot: '"', '#39': "'", amp: '&' };
