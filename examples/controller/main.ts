/** `npm run example:controller`: see README.md beside this file. */
import { runDemo } from './demo/run-demo.ts';
import { selfCheck } from './demo/self-check.ts';
import { parseOptions, type DemoOptions, type ExampleOptions } from './options.ts';
import { ControllerScreen } from './terminal/controller-screen.ts';
import { watchDirectory } from './watch-directory.ts';

const EXIT_FAILED = 1;
/** What a shell expects of a program that ended because of Ctrl-C: 128 + SIGINT. */
const EXIT_INTERRUPTED = 130;

async function main(args: readonly string[]): Promise<number> {
  const options = parseOptions(args);
  if (typeof options === 'number') return options;
  const stop = new AbortController();
  const onSignal = (): void => {
    stop.abort();
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal); // the next one ends the process
  };
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  const screen = new ControllerScreen(options.mode === 'watch');
  try {
    return await show(options, screen, stop.signal);
  } catch (error) {
    screen.close();
    process.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\n`);
    return EXIT_FAILED;
  } finally {
    screen.close();
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
  }
}

async function show(options: ExampleOptions, screen: ControllerScreen, signal: AbortSignal): Promise<number> {
  if (options.mode === 'demo') return demonstrate(options, screen, signal);
  const failing = await watchDirectory(options, screen, signal);
  return failing > 0 ? EXIT_FAILED : 0;
}

async function demonstrate(
  options: DemoOptions,
  screen: ControllerScreen,
  signal: AbortSignal,
): Promise<number> {
  try {
    const result = await runDemo(options, screen, signal);
    screen.close();
    screen.showResult(result);
    const complaints = selfCheck(result);
    screen.showVerdict(complaints);
    return complaints.length > 0 ? EXIT_FAILED : 0;
  } catch (error) {
    if (!signal.aborted) throw error;
    screen.event('interrupted');
    return EXIT_INTERRUPTED;
  }
}

// A reader that has seen enough, as in `| head`, is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});
process.exitCode = await main(process.argv.slice(2));
