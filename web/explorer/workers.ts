const ownWorkers = ['json', 'graphql'];

// Monaco reads this global. The addresses are relative to this script, because
// a proxy may serve it below a prefix.
Object.assign(globalThis, {
  MonacoEnvironment: {
    getWorker(_id: string, label: string) {
      const name = ownWorkers.includes(label) ? label : 'editor';
      return new Worker(new URL(`${name}.worker.js`, import.meta.url), {
        type: 'module',
      });
    },
  },
});
