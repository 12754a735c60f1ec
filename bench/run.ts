/** `npm run bench`: reads the command line, measures, and reports. The harness is in lib. */
import { writeFileSync } from 'node:fs';
import { installPackages } from '../tools/install.ts';
import { parseCommandLine } from './lib/command-line.ts';
import { renderComparison } from './lib/compare.ts';
import { buildLibrary, print, runProgram } from './lib/program.ts';
import { renderReport } from './lib/report.ts';
import { problemsOf, readResult, writeResult } from './lib/result.ts';
import { chooseCases, partNamesIn, runBenchmarks } from './lib/run-benchmarks.ts';
import { renderSummary } from './lib/terminal.ts';

await runProgram(async () => {
  const folder = import.meta.dirname;
  const settings = parseCommandLine(process.argv.slice(2), partNamesIn(folder), print);
  if (settings === undefined) return [];
  const { quick = false, compare, json, html } = settings;
  const then = compare === undefined ? undefined : readResult(compare);
  const chosen = await chooseCases(folder, settings);
  installPackages('bench');
  buildLibrary();
  const result = await runBenchmarks(chosen, quick, (text) => print(`${text}\n`));
  print(renderSummary(result));
  if (then !== undefined) print(`\n${renderComparison(result, then)}`);
  if (json !== undefined) writeResult(json, result);
  if (html !== undefined) writeFileSync(html, renderReport(result));
  return problemsOf(result);
});
