import fc from 'fast-check';
import {
  type GraphQLArgument,
  GraphQLBoolean,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLInputType,
  GraphQLNonNull,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  isEnumType,
  isInputObjectType,
  isIntrospectionType,
  isListType,
  isNonNullType,
  isObjectType,
} from 'graphql';

/** By type: valid values, then values that the type or the service refuses. */
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
    [
      '"Rex"',
      '"7"',
      '"""block "quoted" text"""',
      '"\\uD83D\\uDC15"',
      '"\\u{1F415}"',
      '"Pet"',
    ],
    ['""', '"\\u0000"', '"\\uD800"', '5'],
  ],
  Boolean: [
    ['true', 'false'],
    ['null', '1'],
  ],
};

type Text = fc.Arbitrary<string>;

const random = (text: Text | string): Text =>
  typeof text === 'string' ? fc.constant(text) : text;
const anyOf = (texts: string): Text => fc.constantFrom(...texts.split(' '));
/** `other` in one of `odds` cases. */
const oneIn = (
  odds: number,
  usual: Text | string,
  other: Text | string,
): Text =>
  fc.oneof(
    { weight: odds - 1, arbitrary: random(usual) },
    { weight: 1, arbitrary: random(other) },
  );
/** A template with random parts. */
const text = (
  strings: TemplateStringsArray,
  ...parts: Array<Text | string>
): Text =>
  fc
    .tuple(...parts.map(random))
    .map((all) => String.raw({ raw: strings }, ...all));

const anyLiteral = anyOf('null 1 "x" {} [] [[1]] $nobody RED {a:1} 1e400');

/** A page is that after a place, or that before one. */
function withoutExcluded(members: string[]): string[] {
  const isForward = members.some((text) => /^(?:first|after):/.test(text));
  return members.filter(
    (text) => !(isForward && /^(?:last|before):/.test(text)),
  );
}

/**
 * Random GraphQL documents for a schema, with every construct of the language.
 * Most are valid; without `mayBeFaulty` nearly all are.
 *
 * @param odds a rare construct occurs once in so many cases
 */
export function documents(
  schema: GraphQLSchema,
  { odds = 12, mayBeFaulty = true } = {},
): Text {
  /** The types of the variables, by their names. */
  const typeOf = new Map<string, GraphQLInputType>();
  const known = new Map<string, Text>();
  const rarely = (usual: Text | string, other: Text | string) =>
    oneIn(odds, usual, other);
  const faulty = (usual: Text | string, other: Text | string) =>
    mayBeFaulty ? rarely(usual, other) : random(usual);

  function literal(type: GraphQLInputType): Text {
    if (isNonNullType(type)) return literal(type.ofType);
    if (isListType(type)) return text`[${literal(type.ofType)}]`;
    if (isEnumType(type))
      return faulty(
        fc.constantFrom(...type.getValues().map(({ name }) => name)),
        'lost',
      );
    if (isInputObjectType(type))
      return text`{ ${given(Object.values(type.getFields()))} }`;
    const [right, wrong] = literals[type.name] as [string[], string[]];
    return faulty(fc.constantFrom(...right), fc.constantFrom(...wrong));
  }

  function value(type: GraphQLInputType): Text {
    const variable = `v${`${type}`.replace(/\W/g, 'x')}`;
    typeOf.set(variable, type);
    return faulty(
      oneIn(3, literal(type), `$${variable}`),
      rarely(literal(type), anyLiteral),
    );
  }

  /** Arguments, or the members of an input. */
  function given(
    all: ReadonlyArray<GraphQLArgument | GraphQLInputField>,
  ): Text {
    const members = all.map(({ name, type }) => {
      const member = text`${name}: ${value(type)}`;
      return isNonNullType(type) ? faulty(member, '') : oneIn(3, '', member);
    });
    const unknown = faulty('', rarely('', 'colour: RED'));
    return fc
      .tuple(...members, unknown)
      .map((texts) => withoutExcluded(texts.filter(Boolean)).join(', '));
  }

  const condition = oneIn(
    3,
    faulty('include', anyOf('defer deprecated nobody')),
    'skip',
  );
  const directives = rarely(
    '',
    text` @${condition}(if: ${value(new GraphQLNonNull(GraphQLBoolean))})`,
  );

  function selections(type: GraphQLObjectType, depth: number): Text {
    if (depth > 5) return random('{ __typename }');
    const place = `${type.name} ${depth}`;
    const texts = known.get(place) ?? selectionsOf(type, depth);
    known.set(place, texts);
    return texts;
  }

  function selectionsOf(type: GraphQLObjectType, depth: number): Text {
    const fields = fc.oneof(
      ...Object.values(type.getFields()).map((definition) =>
        field(definition, depth),
      ),
    );
    const inline = text`...${oneIn(3, ` on ${type.name}`, '')}${directives} ${selections(type, depth + 1)}`;
    const spread = oneIn(3, inline, text`...On${type.name}${directives}`);
    const selection = rarely(
      rarely(fields, faulty('__typename', 'nothing')),
      spread,
    );
    const all = fc.array(selection, {
      minLength: 1,
      maxLength: depth === 0 ? 3 : 4,
      size: 'max',
    });
    return text`{ ${all.map((texts) => texts.join(' '))} }`;
  }

  function field(
    { name, args, type }: GraphQLField<unknown, unknown>,
    depth: number,
  ): Text {
    const result = getNamedType(type);
    const inner = isObjectType(result) ? selections(result, depth + 1) : '';
    // A field with other arguments needs another name. The document replaces
    // each # by a unique number.
    const alias = rarely('a#', anyOf('id name __proto__ then a'));
    const named = fc
      .tuple(given(args), alias, rarely('', alias))
      .map(([texts, needed, unneeded]) => {
        const own = texts ? needed : unneeded;
        return `${own && `${own}: `}${name}${texts && `(${texts})`}`;
      });
    return text`${named}${directives} ${inner}`;
  }

  const types = Object.values(schema.getTypeMap()).filter(
    (type) => isObjectType(type) && !isIntrospectionType(type),
  );
  const fragments = (types as GraphQLObjectType[]).map((type) => {
    const body = text`${mayBeFaulty ? directives : ''} ${selections(type, 3)}`;
    // Only a faulty fragment spreads itself.
    const whole = mayBeFaulty
      ? body
      : body.map((texts) =>
          texts.replaceAll(`...On${type.name}`, '__typename'),
        );
    return [
      `On${type.name}`,
      text`fragment On${type.name} on ${type.name}${whole}`,
    ];
  });
  const root = (kind: Text | string, type: unknown) =>
    fc.tuple(random(kind), selections(type as GraphQLObjectType, 0));
  const query = root(faulty('query', 'subscription'), schema.getQueryType());
  const operation = fc.oneof(
    query,
    query,
    root('mutation', schema.getMutationType()),
  );
  const defaults = [...typeOf].map(([name, type]) => {
    return [
      name,
      isNonNullType(type) ? random('') : rarely('', text` = ${literal(type)}`),
    ];
  });
  return fc
    .record({
      operations: fc.oneof(
        { weight: odds, arbitrary: fc.tuple(operation) },
        fc.tuple(operation, operation),
      ),
      first: oneIn(3, 'Operation0', ''),
      fragments: fc.record<Record<string, string>>(
        Object.fromEntries(fragments),
      ),
      defaults: fc.record<Record<string, string>>(Object.fromEntries(defaults)),
      extra: faulty(
        '',
        fc.constantFrom(
          'fragment Z on Pet { id }',
          '{ pets { id } }',
          'type A { a: Int }',
        ),
      ),
      separator: fc.constantFrom(' ', '\n', '\r\n', ',', '\ufeff#c\n'),
    })
    .map(({ operations, first, fragments, defaults, extra, separator }) => {
      const spread = new Set(spreadIn(operations.join()));
      // A fragment may spread others, which the loop visits, too.
      for (const name of spread)
        for (const other of spreadIn(fragments[name])) spread.add(other);
      const written = Array.from(spread, (name) => fragments[name]);
      const texts = operations.map(([kind, selected], at) => {
        const variables = new Set(
          [selected, ...written].join().match(/(?<=\$)v\w+/g),
        );
        const declared = Array.from(
          variables,
          (name) => `$${name}: ${typeOf.get(name)}${defaults[name]}`,
        ).join(', ');
        return `${kind} ${at > 0 ? 'Operation1' : first}${declared && `(${declared})`} ${selected}`;
      });
      let aliases = 0;
      const all = [...texts, ...written, extra].filter(Boolean).join(separator);
      return all.replaceAll('a#', () => `a${++aliases}`);
    });
}

const spreadIn = (selected = ''): string[] =>
  selected.match(/(?<=\.{3})On\w+/g) ?? [];
