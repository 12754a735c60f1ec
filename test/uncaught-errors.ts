import { onTestFinished } from 'vitest';

/** Collects uncaught exceptions during a test, which would end the run. */
export function uncaughtErrors(): Error[] {
  const uncaught: Error[] = [];
  const before = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException');
  process.on('uncaughtException', (error) => uncaught.push(error));
  onTestFinished(() => {
    process.removeAllListeners('uncaughtException');
    for (const listener of before) process.on('uncaughtException', listener);
  });
  return uncaught;
}
