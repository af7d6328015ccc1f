import type { Command, Option } from 'commander';

/** What can be typed after a command. */
export interface Place {
  /** The words that lead there: `keys issue`; empty for the program itself. */
  path: string;
  commands: Word[];
  options: Array<Word & { choices: readonly string[]; takesValue: boolean }>;
  /** What the first argument may be, where that is known. */
  choices: readonly string[];
}

interface Word {
  word: string;
  description: string;
}

/** Every command of a program, from its own tree: a new one is completed without a word said. */
export function placesIn(command: Command, path: string[] = []): Place[] {
  const help = command.createHelp();
  // `help` among them.
  const commands = help.visibleCommands(command);
  const place = {
    path: path.join(' '),
    commands: commands.map((one) => ({ word: one.name(), description: one.description() })),
    options: help.visibleOptions(command).map(optionOf),
    choices: command.registeredArguments[0]?.argChoices ?? [],
  };
  return [place, ...commands.flatMap((one) => placesIn(one as Command, [...path, one.name()]))];
}

function optionOf({ long, short, description, argChoices = [], required, optional }: Option) {
  return { word: long ?? short ?? '', description, choices: argChoices, takesValue: required || optional };
}

/** Scripts that complete by themselves: no process is started while somebody types. */
export const shells = { bash, zsh, fish };

// Nothing fits where a file is meant, and `-o default` completes files then.
function bash(places: Place[]): string {
  return `# eval "$(animal-store completion bash)", in ~/.bashrc for instance
_animal_store() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} path='' words='' i
  # \`=\` is a word of its own.
  if [[ $current == = ]]; then current=''; elif [[ $previous == = ]]; then previous=\${COMP_WORDS[COMP_CWORD-2]}; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$path \${COMP_WORDS[i]}" in
      ${pathsOf(places)}) path+=" \${COMP_WORDS[i]}" ;;
    esac
  done
  case "$path $previous" in
${values(places, ({ choices }) => `words=${quoted(choices.join(' '))}`)}
    *)
      case "$path|\${current:0:1}" in
${places.map((place) => `        ${quoted(`${prefix(place)}|-`)}) words=${quoted(place.options.map(wordOf).join(' '))} ;;`).join('\n')}
${places.map((place) => `        ${quoted(`${prefix(place)}|`)}*) words=${quoted([...place.commands.map(wordOf), ...place.choices].join(' '))} ;;`).join('\n')}
      esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _animal_store animal-store
`;
}

function zsh(places: Place[]): string {
  return `#compdef animal-store
# eval "$(animal-store completion zsh)", in ~/.zshrc for instance, after compinit
_animal_store() {
  local at='' i
  local -a found
  for ((i = 2; i < CURRENT; i++)); do
    case "$at \${words[i]}" in
      ${pathsOf(places)}) at+=" \${words[i]}" ;;
    esac
  done
  case "$at \${words[CURRENT-1]}" in
${values(places, ({ choices }) => `found=(${choices.map(quoted).join(' ')})`)}
    *)
      case "$at|\${words[CURRENT]:0:1}" in
${places.map((place) => `        ${quoted(`${prefix(place)}|-`)}) found=(${place.options.map(described).join(' ')}) ;;`).join('\n')}
${places.map((place) => `        ${quoted(`${prefix(place)}|`)}*) found=(${[...place.commands.map(described), ...place.choices.map(quoted)].join(' ')}) ;;`).join('\n')}
      esac ;;
  esac
  if (( $#found )); then _describe 'animal-store' found; else _files; fi
}
compdef _animal_store animal-store
`;
}

function fish(places: Place[]): string {
  const lines = places.flatMap(({ path, commands, options, choices }) => {
    const at = `complete -c animal-store -n ${quoted(`__animal_store_at ${quoted(path)}`)}`;
    return [
      ...commands.map(({ word, description }) => `${at} -f -a ${word} -d ${quoted(description)}`),
      ...choices.map((word) => `${at} -f -a ${quoted(word)}`),
      ...options.map(({ word, description, takesValue, choices: values }) => {
        const value = values.length > 0 ? ` -x -a ${quoted(values.join(' '))}` : takesValue ? ' -r' : '';
        return `${at} -l ${word.replace(/^--/, '')}${value} -d ${quoted(description)}`;
      }),
    ];
  });
  return `# animal-store completion fish | source, in ~/.config/fish/config.fish for instance
function __animal_store_at
  set -l at
  for word in (commandline -opc)[2..-1]
    set -l next (string trim "$at $word")
    if contains -- "$next" ${places
      .flatMap(({ path }) => path || [])
      .map(quoted)
      .join(' ')}
      set at $next
    end
  end
  test "$at" = "$argv"
end
${lines.join('\n')}
`;
}

const wordOf = ({ word }: Word) => word;
const prefix = ({ path }: Place) => (path ? ` ${path}` : '');
const pathsOf = (places: Place[]) =>
  places
    .flatMap((place) => prefix(place) || [])
    .map(quoted)
    .join(' | ');
/** Inside of a \`_describe\`, what follows the first colon is the description. */
const described = ({ word, description }: Word) => quoted(`${word}:${description.replaceAll(':', ' ')}`);
/** For a POSIX shell, and for fish. */
const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

/** A case for each option that is followed by a value. */
function values(places: Place[], complete: (option: Place['options'][number]) => string): string {
  return places
    .flatMap((place) =>
      place.options
        .filter(({ takesValue }) => takesValue)
        .map((option) => `    ${quoted(`${prefix(place)} ${option.word}`)}) ${complete(option)} ;;`),
    )
    .join('\n');
}
