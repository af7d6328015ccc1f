/**
 * Prepares a search in the guides.
 *
 * A word also finds longer ones: `rotating` finds `rotate` and `rotation`. Rare
 * words count more than frequent ones, headings and the first words of a block
 * more than the others, and guides for users more than those for developers.
 *
 * @param guides what tools/guide-index.mjs makes
 * @returns a function from a question to the best chapters: their address,
 *   title, heading, and the block that fits best
 */
export function searchIn(guides) {
  const chapters = guides.flatMap(({ address, title, weight, chapters }) =>
    chapters.map(([id, heading, blocks]) => ({
      address,
      id,
      title,
      weight,
      heading,
      blocks,
      titleWords: wordsOf(title),
      headingWords: wordsOf(heading),
      blockWords: blocks.map(([text]) => wordsOf(text)),
    })),
  );
  const rarityOf = (stem) => {
    const isIn = ({ headingWords, blockWords }) =>
      [headingWords, ...blockWords].some((words) => match(words, stem) > 0);
    return Math.log(chapters.length / (1 + chapters.filter(isIn).length));
  };
  return (question) => {
    const stems = stemsOf(question).map((stem) => [stem, rarityOf(stem)]);
    return chapters
      .map((chapter) => rated(chapter, stems))
      .filter(({ rank }) => rank > 0)
      .sort((one, other) => other.rank - one.rank)
      .slice(0, 8);
  };
}

function rated(chapter, stems) {
  const { title, heading, weight } = chapter;
  const sum = (words) =>
    stems.reduce(
      (total, [stem, rarity]) => total + rarity * match(words, stem),
      0,
    );
  const whole = sum(stems.map(([stem]) => stem));
  const names = [...chapter.headingWords, ...chapter.titleWords];
  const ofNames = 2 * sum(chapter.headingWords) + sum(chapter.titleWords);
  const ranks = chapter.blockWords.map((words) => {
    const ofBlock = sum(words) + sum(words.slice(0, 4));
    const share = sum([...names, ...words]) / whole;
    return (ofNames + ofBlock / length(words)) * share;
  });
  const best = Math.max(0, ...ranks);
  const others = ranks.reduce((total, rank) => total + rank, -best);
  const rank = (best + Math.min(best, others) / 8) * weight;
  const [block = '', row] = chapter.blocks[ranks.indexOf(best)] ?? [];
  const address = `${chapter.address}#${row ?? chapter.id}`;
  return { address, title, heading, rank, block };
}

/** A long block has more words by chance. */
const length = (words) => 1 + Math.log2(1 + words.length / 80);

/** 1 for a word itself, less for one that only begins with it. */
function match(words, stem) {
  let best = 0;
  for (const word of words) {
    if (word.startsWith(stem))
      best = Math.max(best, word.length - stem.length < 3 ? 1 : 0.4);
  }
  return best;
}

/** The words to mark in a result. */
export function stemsOf(question) {
  const words = wordsOf(question).map((word) => ours[word] ?? word);
  const telling = words.filter((word) => !common.has(word));
  return [...new Set((telling.length > 0 ? telling : words).map(stemOf))];
}

/** Words that the guides do not use, with the ones that they use. */
const ours = {
  cursor: 'page',
  delete: 'remove',
  duplicate: 'twice',
  install: 'npm',
  nginx: 'proxy',
  paginate: 'page',
  pagination: 'page',
  rate: 'quota',
  ssl: 'tls',
  subscribe: 'live',
  swagger: 'reference',
  throttle: 'quota',
  throttling: 'quota',
  timeout: 'deadline',
  tracing: 'traces',
  unauthorized: 'unauthenticated',
  websocket: 'subscription',
};

const common = new Set(
  'a an and are at be by can do does for from get has have how i in into is it make mean means my of on or our set should that the there this to use want what when where which who why will with without you your'.split(
    ' ',
  ),
);

const stemOf = (word) => word.replace(/(?<=\w{3})(?:ing|ed|es|s|ion|e)$/, '');

const wordsOf = (text) => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
