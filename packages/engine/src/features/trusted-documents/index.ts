import { text } from '../../config/variables.ts';
import { feature } from '../../feature.ts';

/** Lets only documents run that the operator has registered. */
export const trustedDocuments = feature({
  name: 'trusted-documents',
  variables: {
    TRUSTED_DOCUMENTS: text(
      undefined,
      'Manifest of the only operations that may run (graphql.md).',
    ),
  },
  async start({ values }) {
    const { TRUSTED_DOCUMENTS: manifest } = values;
    if (manifest === undefined) return undefined;
    const { documentParts } = await import('./trusted-documents.ts');
    return { graphql: documentParts(manifest) };
  },
});
