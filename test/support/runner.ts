// @ts-expect-error It has no types.
import LightRunner from 'jest-light-runner/child-process';
import Tinypool from 'tinypool';

type Run = Tinypool['run'];
type Message = (message: unknown) => void;

const { run } = Tinypool.prototype;

/**
 * Each worker asks the runner for its settings. `jest-light-runner` 0.8.2 sends them to all workers that it knows and
 * forgets them, so one that is not listening yet misses them, asks in vain, and Jest waits for ever: in three of twelve
 * runs of six trivial files. Here a worker is known when it asks, and by its own question.
 */
Tinypool.prototype.run = function ask(this: Tinypool, ...[task, options]: Parameters<Run>): ReturnType<Run> {
  const { channel } = options ?? {};
  let listener: Message = () => undefined;
  const own = {
    onMessage(listens: Message) {
      listener = listens;
    },
    postMessage(message: unknown) {
      channel?.onMessage?.(listener);
      channel?.postMessage?.(message);
    },
  };
  return run.call(this, task, channel ? { ...options, channel: own } : options);
};

export default LightRunner;
