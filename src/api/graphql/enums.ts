import { type GraphQLEnumType, GraphQLError, type GraphQLSchema, isEnumType } from 'graphql';

/** Makes errors about values of enumerations name all that are possible: graphql-js suggests those of a similar spelling. */
export function nameValues(schema: GraphQLSchema): void {
  for (const type of Object.values(schema.getTypeMap())) {
    if (isEnumType(type) && !type.name.startsWith('__')) nameValuesOf(type);
  }
}

function nameValuesOf(type: GraphQLEnumType): void {
  const { parseValue, parseLiteral } = type;
  const names = type.getValues().map(({ name }) => name);
  const named = <Result>(parse: () => Result): Result => {
    try {
      return parse();
    } catch (error) {
      if (!(error instanceof GraphQLError)) throw error;
      const fault = error.message.replace(/\.(?: Did you mean .+)?$/s, '');
      throw new GraphQLError(`${fault}: it must be one of ${names.join(', ')}.`, { nodes: error.nodes });
    }
  };
  // There is no option for it: a type of one's own would have to be made for each enumeration of type-graphql.
  type.parseValue = (...given) => named(() => parseValue.apply(type, given));
  type.parseLiteral = (...given) => named(() => parseLiteral.apply(type, given));
}
