import fc from 'fast-check';
import {
  type GraphQLArgument,
  GraphQLBoolean,
  type GraphQLField,
  type GraphQLInputType,
  type GraphQLNamedType,
  GraphQLNonNull,
  type GraphQLSchema,
  getNamedType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  isObjectType,
} from 'graphql';

/**
 * Decisions read from a tape of numbers, so that whatever is decided by them is a fast-check value: the same tape
 * decides the same, and a shorter tape, or one of smaller numbers, something simpler. After its end all is simplest.
 */
export class Choices {
  #at = 0;

  /** @param odds how rare is rare: one in so many */
  constructor(
    readonly tape: readonly number[],
    readonly odds = 12,
  ) {}

  #next(): number {
    return this.tape[this.#at++] ?? 0;
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.#next() % items.length] as Item;
  }

  times<Item>(min: number, max: number, one: (index: number) => Item): Item[] {
    return Array.from({ length: min + (this.#next() % (max - min + 1)) }, (_, index) => one(index));
  }

  rarely(): boolean {
    return this.#next() % this.odds === this.odds - 1;
  }

  sometimes(): boolean {
    return this.#next() % 3 === 2;
  }

  often(): boolean {
    return this.#next() % 3 !== 0;
  }
}

export const choices = fc.array(fc.nat(9999), { maxLength: 150, size: 'max' }).map((tape) => new Choices(tape));

/** By type: values that it takes, then values that it, or the service, refuses. */
const literals: Record<string, [string[], string[]]> = {
  Int: [
    ['1', '3', '20', '100'],
    ['0', '101', '-1', '2147483648', '1.5', '"1"'],
  ],
  ID: [
    ['"1"', '1', '9223372036854775807', '-9223372036854775808'],
    ['"9223372036854775808"', '"rex"', '""', '1.0', 'true'],
  ],
  String: [
    ['"Rex"', '"7"', '"""block "quoted" text"""', '"\\uD83D\\uDC15"', '"\\u{1F415}"', '"Pet"'],
    ['""', '"\\u0000"', '"\\uD800"', '5'],
  ],
  Boolean: [
    ['true', 'false'],
    ['null', '1'],
  ],
};
const anyLiteral = ['null', '1', '"x"', '{}', '[]', '[[1]]', '$nobody', 'RED', '{a: 1}', '1e400'];

const booleanType = new GraphQLNonNull(GraphQLBoolean);

/**
 * Writes random GraphQL documents for a schema, with every construct of the language: mostly valid ones, or, unless they
 * may be faulty, nearly always.
 */
export class DocumentWriter {
  readonly #schema: GraphQLSchema;
  readonly #choices: Choices;
  readonly #mayBeFaulty: boolean;
  /** The type of the fragment that is being written: it must not spread itself. */
  #within: GraphQLNamedType | undefined;
  readonly #variables = new Map<string, string>();
  readonly #fragments = new Map<string, GraphQLNamedType>();
  #spreadable = true;
  #aliases = 0;

  constructor(schema: GraphQLSchema, choices: Choices, mayBeFaulty = true) {
    this.#schema = schema;
    this.#choices = choices;
    this.#mayBeFaulty = mayBeFaulty;
  }

  #faulty(): boolean {
    return this.#mayBeFaulty && this.#choices.rarely();
  }

  document(): string {
    const operations = this.#choices.times(1, this.#choices.rarely() ? 2 : 1, (index) => this.#operation(index));
    const fragments: string[] = [];
    for (const [name, type] of this.#fragments) {
      this.#within = this.#mayBeFaulty ? undefined : type;
      this.#spreadable = this.#choices.rarely();
      fragments.push(
        `fragment ${name} on ${type.name}${this.#mayBeFaulty ? this.#directives() : ''} ${this.#selections(type, 3)}`,
      );
    }
    if (this.#faulty())
      fragments.push(this.#choices.pick(['fragment Z on Pet { id }', '{ pets { id } }', 'type A { a: Int }']));
    return [...operations, ...fragments].join(this.#choices.pick([' ', '\n', '\r\n', ',', '\ufeff#c\n']));
  }

  #operation(index: number): string {
    const kind = this.#faulty() ? 'subscription' : this.#choices.pick(['query', 'query', 'mutation']);
    const root = kind === 'mutation' ? this.#schema.getMutationType() : this.#schema.getQueryType();
    this.#variables.clear();
    const selections = this.#selections(root as GraphQLNamedType, 0);
    const declared = [...this.#variables].map(([variable, type]) => `$${variable}: ${type}${this.#default(type)}`);
    const name = index > 0 || this.#choices.often() ? `Operation${index}` : '';
    return `${kind} ${name}${declared.length > 0 ? `(${declared.join(', ')})` : ''} ${selections}`;
  }

  #selections(type: GraphQLNamedType, depth: number): string {
    if (depth > 5 || !isObjectType(type)) return '{ __typename }';
    const fields = Object.values(type.getFields());
    return `{ ${this.#choices.times(1, depth === 0 ? 3 : 4, () => this.#selection(type, fields, depth)).join(' ')} }`;
  }

  #selection(type: GraphQLNamedType, fields: GraphQLField<unknown, unknown>[], depth: number): string {
    if (this.#spreadable && this.#choices.rarely()) return this.#spread(type, depth);
    if (this.#choices.rarely()) return this.#choices.pick(['__typename', this.#faulty() ? 'nothing' : '__typename']);
    const field = this.#choices.pick(fields);
    const given = this.#arguments(field.args);
    // The same field with other arguments needs another name.
    const alias = given || this.#choices.rarely() ? `${this.#alias()}: ` : '';
    const result = getNamedType(field.type);
    const inner = isObjectType(result) ? this.#selections(result, depth + 1) : '';
    return `${alias}${field.name}${given}${this.#directives()} ${inner}`;
  }

  #alias(): string {
    this.#aliases += 1;
    return this.#choices.rarely() ? this.#choices.pick(['id', 'name', '__proto__', 'then', 'a']) : `a${this.#aliases}`;
  }

  #spread(type: GraphQLNamedType, depth: number): string {
    if (this.#within !== type && this.#choices.sometimes()) {
      this.#fragments.set(`On${type.name}`, type);
      return `...On${type.name}${this.#directives()}`;
    }
    const on = this.#choices.often() ? ` on ${type.name}` : '';
    return `...${on}${this.#directives()} ${this.#selections(type, depth + 1)}`;
  }

  #arguments(args: readonly GraphQLArgument[]): string {
    const given = args
      .filter((argument) => (isNonNullType(argument.type) ? !this.#faulty() : this.#choices.sometimes()))
      .map((argument) => `${argument.name}: ${this.#value(argument.type)}`);
    if (this.#faulty() && this.#choices.rarely()) given.push('colour: RED');
    return given.length > 0 ? `(${given.join(this.#choices.pick([', ', ' ']))})` : '';
  }

  #value(type: GraphQLInputType): string {
    if (this.#faulty() && this.#choices.rarely()) return this.#choices.pick(anyLiteral);
    if (!this.#choices.sometimes()) return this.#literal(type);
    const name = `v${`${type}`.replace(/\W/g, 'x')}`;
    this.#variables.set(name, `${type}`);
    return `$${name}`;
  }

  #literal(type: GraphQLInputType): string {
    if (isNonNullType(type)) return this.#literal(type.ofType);
    if (isListType(type)) return `[${this.#literal(type.ofType)}]`;
    if (isEnumType(type)) return this.#faulty() ? 'lost' : this.#choices.pick(type.getValues()).name;
    if (!isInputObjectType(type))
      return this.#choices.pick(literals[type.name]?.[this.#faulty() ? 1 : 0] ?? anyLiteral);
    const members = Object.values(type.getFields()).filter(
      (member) => isNonNullType(member.type) || this.#choices.often(),
    );
    return `{ ${members.map((member) => `${member.name}: ${this.#value(member.type)}`).join(', ')} }`;
  }

  #default(type: string): string {
    if (type.endsWith('!') || !this.#choices.rarely()) return '';
    return ` = ${this.#choices.pick(literals[type]?.[0] ?? anyLiteral)}`;
  }

  #directives(): string {
    if (!this.#choices.rarely()) return '';
    const name = this.#faulty() ? this.#choices.pick(['defer', 'deprecated', 'nobody']) : 'include';
    return ` @${this.#choices.sometimes() ? 'skip' : name}(if: ${this.#value(booleanType)})`;
  }
}
