/** `npm run example:jobs`: see README.md beside this file. */
import { installPackages } from '../../tools/install.ts';
import { parseOptions, type ExampleOptions } from './options.ts';

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
    return await run(options, stop.signal);
  } catch (error) {
    process.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\n`);
    return EXIT_FAILED;
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
  }
}

/** Imports what needs the packages of this folder when they are there. */
async function run(options: ExampleOptions, signal: AbortSignal): Promise<number> {
  installPackages('examples/jobs');
  if (options.mode === 'demo') {
    process.stdout.write(
      `An image service with ${options.workers} workers, and customers who send it images.\n`,
    );
    const { demonstrate } = await import('./demonstrate.ts');
    return demonstrate(options, signal);
  }
  const { serve } = await import('./serve.ts');
  return serve(options, signal);
}

// A reader that has seen enough, as in `| head`, is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});
process.exitCode = await main(process.argv.slice(2));
