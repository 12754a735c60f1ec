/** `npm run demo`: see README.md beside this file. */
import { DemoScreen } from './terminal/demo-screen.ts';
import { parseOptions, type DemoOptions } from './options.ts';
import { selfCheck } from './self-check.ts';

const EXIT_FAILED = 1;
/** What a shell expects of a program that ended because of Ctrl-C: 128 + SIGINT. */
const EXIT_INTERRUPTED = 130;

async function main(args: readonly string[]): Promise<number> {
  const options = parseOptions(args);
  if (typeof options === 'number') return options;
  try {
    return await demonstrate(options);
  } catch (error) {
    process.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\n`);
    return EXIT_FAILED;
  }
}

async function demonstrate(options: DemoOptions): Promise<number> {
  const interrupt = new AbortController();
  const onSignal = (): void => {
    interrupt.abort();
  };
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  const screen = new DemoScreen(options);
  try {
    const { runDemo } = await import('./run-demo.ts'); // after the introduction: loading the library takes a moment
    const result = await runDemo(options, interrupt.signal, screen.showProgress);
    const complaints = selfCheck(result);
    screen.showResult(result, complaints);
    if (options.htmlFile !== undefined) {
      const { writeHtmlReport } = await import('./html/html-report.ts');
      screen.say(`Report: ${writeHtmlReport(options.htmlFile, result, complaints)}`);
    }
    if (complaints.length > 0) return EXIT_FAILED;
    return result.isInterrupted ? EXIT_INTERRUPTED : 0;
  } finally {
    screen.close();
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
  }
}

// A reader that has seen enough, as in `npm run demo | head`, is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});
process.exitCode = await main(process.argv.slice(2));
