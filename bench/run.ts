/** `npm run bench`: reads the command line, measures, and sets the exit code. Everything else is in lib. */
import { writeFileSync } from 'node:fs';
import { installPackages } from '../tools/install.ts';
import { buildLibrary } from './lib/build-library.ts';
import { parseCommandLine, type Settings } from './lib/command-line.ts';
import { renderComparison } from './lib/compare.ts';
import { partNamesIn } from './lib/discover.ts';
import { renderReport } from './lib/report.ts';
import { problemsOf, type BenchResult } from './lib/result.ts';
import { readResult, writeResult } from './lib/result-file.ts';
import { runBenchmarks } from './lib/run-benchmarks.ts';
import { renderSummary } from './lib/summary.ts';
import { UsageError } from './lib/usage-error.ts';

const EXIT_NOT_DONE = 1;
const EXIT_USAGE = 2;

const out = (text: string): void => {
  process.stdout.write(text);
};
const err = (text: string): void => {
  process.stderr.write(text);
};

async function main(): Promise<number> {
  const folder = import.meta.dirname;
  const settings = parseCommandLine(process.argv.slice(2), partNamesIn(folder), { out });
  if (settings === undefined) return 0;
  const then = settings.compareFile === undefined ? undefined : readResult(settings.compareFile);
  installPackages('bench');
  buildLibrary();
  const result = await runBenchmarks(folder, settings, (text) => {
    out(`${text}\n`);
  });
  report(result, then, settings);
  const problems = problemsOf(result);
  for (const problem of problems) err(`self-check failed: ${problem}\n`);
  return problems.length === 0 ? 0 : EXIT_NOT_DONE;
}

function report(result: BenchResult, then: BenchResult | undefined, settings: Settings): void {
  out(renderSummary(result));
  if (then !== undefined) out(`\n${renderComparison(result, then)}`);
  if (settings.jsonFile !== undefined) writeResult(settings.jsonFile, result);
  if (settings.htmlFile !== undefined) writeFileSync(settings.htmlFile, renderReport(result));
}

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  err(`error: ${error.message}\nSee --help.\n`);
  process.exitCode = EXIT_USAGE;
}
