/** What the practice adds to GraphQL types, for `fieldsForAll`. */
export const practiceFields = {
  Pet: ['visits', 'tags'],
  Tag: ['pets'],
  Owner: ['visits'],
  Visit: ['pet', 'owner', 'treatments'],
  Treatment: ['visit'],
  PetTag: ['pet', 'tag'],
};
