/** `npm run example:jobs`: see README.md beside this file. */
import { demonstrate } from './demonstrate.ts';
import { parseOptions } from './options.ts';
import { serve } from './serve.ts';

const EXIT_FAILED = 1;

async function main(args: readonly string[]): Promise<number> {
  const options = parseOptions(args);
  if (typeof options === 'number') return options;
  const stop = new AbortController();
  const onSignal = (): void => {
    stop.abort();
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal); // the next one ends the process
  };
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  try {
    if (options.mode === 'serve') return await serve(options, stop.signal);
    return await demonstrate(options, stop.signal);
  } catch (error) {
    process.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\n`);
    return EXIT_FAILED;
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
  }
}

// A reader that has seen enough, as in `| head`, is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});
process.exitCode = await main(process.argv.slice(2));
