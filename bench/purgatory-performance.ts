/** `npm run bench:purgatory`: Kafka's `TestPurgatoryPerformance`, with its options and its line of results. */
import { CollectorWatch, CollectorWindow } from './lib/collector-watch.ts';
import { buildLibrary } from './lib/build-library.ts';
import { UsageError } from './lib/usage-error.ts';
import { parseHarnessCommandLine, type HarnessSettings } from './purgatory/harness-command-line.ts';
import { renderHarnessResult, renderSamples } from './purgatory/harness-report.ts';
import { checkShare, runHarness } from './purgatory/harness.ts';
import { prepareWorkload } from './purgatory/workload.ts';

const EXIT_NOT_DONE = 1;
const EXIT_USAGE = 2;

const out = (text: string): void => {
  process.stdout.write(text);
};

async function run({ workload: options, purgatory, isVerbose }: HarnessSettings): Promise<number> {
  buildLibrary();
  const { kindOf } = await import('./purgatory/harness-purgatories.ts'); // imports what was built
  const workload = prepareWorkload(options);
  if (isVerbose) out(renderSamples(workload));
  const collector = new CollectorWatch();
  const window = new CollectorWindow();
  const result = await runHarness(workload, kindOf(purgatory), () => {
    window.close();
  });
  const collections = await collector.read(window);
  collector.stop();
  out(renderHarnessResult(result, collections, isVerbose));
  const problem =
    result.problem ?? checkShare(result.expiredShare, result.expiredInTheory, workload.options.num);
  if (problem === undefined) return 0;
  process.stderr.write(`self-check failed: ${problem}\n`);
  return EXIT_NOT_DONE;
}

try {
  const settings = parseHarnessCommandLine(process.argv.slice(2), out);
  process.exitCode = settings === undefined ? 0 : await run(settings);
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  process.stderr.write(`error: ${error.message}\nSee --help.\n`);
  process.exitCode = EXIT_USAGE;
}
