const ownWorkers = ['json', 'graphql'];

// Monaco looks for this. The workers are beside this script, wherever a proxy has put both.
Object.assign(globalThis, {
  MonacoEnvironment: {
    getWorker(_id: string, label: string) {
      const name = ownWorkers.includes(label) ? label : 'editor';
      return new Worker(new URL(`${name}.worker.js`, import.meta.url), { type: 'module' });
    },
  },
});
