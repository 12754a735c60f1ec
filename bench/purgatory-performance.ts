/** `npm run bench:purgatory`: Kafka's `TestPurgatoryPerformance`, with its options and its line of results. */
import { CollectorWatch, CollectorWindow } from './lib/collector.ts';
import { buildLibrary, print, runProgram } from './lib/program.ts';
import { parseHarnessCommandLine, renderHarnessResult } from './purgatory/harness-command.ts';
import { checkShare, runHarness } from './purgatory/harness.ts';
import type { PurgatoryKind } from './purgatory/purgatories.ts';
import { prepareWorkload } from './purgatory/workload.ts';

await runProgram(async () => {
  const settings = parseHarnessCommandLine(process.argv.slice(2), print);
  if (settings === undefined) return [];
  const { workload: options, purgatory } = settings;
  buildLibrary();
  const { KINDS } = await import('./purgatory/purgatories.ts'); // after the build, which it imports
  const kind = KINDS.find(({ id }) => id === purgatory) as PurgatoryKind;
  const workload = prepareWorkload(options);
  const collector = new CollectorWatch();
  const window = new CollectorWindow();
  const result = await runHarness(workload, kind);
  window.close();
  const collections = await collector.read(window);
  collector.stop();
  print(renderHarnessResult(result, collections));
  const problem = result.problem ?? checkShare(result.expiredShare, result.expiredInTheory, options.num);
  return problem === undefined ? [] : [problem];
});
