import { once } from 'node:events';
import type { ServeOptions } from './options.ts';
import { ImageStore } from './service/image-store.ts';
import { JobsService } from './service/jobs-service.ts';
import { Screen } from './terminal/screen.ts';

const EXIT_UNFINISHED = 1;
const FIRST_RETRY_MS = 1_000;

/** Serves until it is told to stop. @returns the exit code. */
export async function serve(options: ServeOptions, signal: AbortSignal): Promise<number> {
  const screen = new Screen(true);
  const { directory, port, workers, maxBytes, keepMs, graceMs } = options;
  const { service, url } = await JobsService.start({
    ...{ port, workers, maxBytes, keepMs, graceMs, cleanUpSpec: '@every 1m' },
    store: new ImageStore(directory),
    retryDelayMs: (retried) => FIRST_RETRY_MS * 2 ** retried,
    tell: (line) => {
      screen.run(line);
    },
    send: (digest) => {
      screen.digest(digest);
    },
  });
  screen.say(`The service listens: ${url}`);
  if (!signal.aborted) await once(signal, 'abort');
  screen.event('stopping');
  const left = await service.close();
  if (left === 0) return 0;
  screen.say(`Not done, and lost with the process: ${left} tasks.`);
  return EXIT_UNFINISHED;
}
