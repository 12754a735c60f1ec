/** One whole run: load the parts, run their cases, print each table as soon as it is known. */
import { wrap } from './wrap.ts';
import { CollectorWatch } from './collector-watch.ts';
import type { Settings } from './command-line.ts';
import { loadPart } from './discover.ts';
import { describeMachine } from './machine.ts';
import type { BenchCase, BenchPart } from './part.ts';
import { Progress } from './progress.ts';
import { trackUncountedMemory } from './uncounted-memory.ts';
import { RESULT_SCHEMA, type BenchResult, type CaseResult, type PartResult } from './result.ts';
import { runCase, stepsOf } from './run-case.ts';
import { renderCase } from './table.ts';
import { UsageError } from './usage-error.ts';

interface ChosenPart {
  readonly name: string;
  readonly part: BenchPart;
  readonly cases: readonly BenchCase[];
}

export async function runBenchmarks(
  folder: string,
  settings: Settings,
  print: (text: string) => void,
): Promise<BenchResult> {
  trackUncountedMemory();
  const chosen = await choose(folder, settings);
  const parts: PartResult[] = [];
  const total = chosen.flatMap(({ cases }) => cases.map((each) => stepsOf(each, settings.isQuick)));
  const progress = new Progress(
    total.reduce((sum, steps) => sum + steps, 0),
    process.stderr,
  );
  const collector = new CollectorWatch();
  for (const { name, part, cases } of chosen) {
    print(headingOf(name, part, settings.isQuick));
    const results = await runCases(cases, settings.isQuick, collector, progress, print);
    parts.push({ name, title: part.title, remarks: part.remarks ?? [], cases: results });
  }
  collector.stop();
  const date = new Date().toISOString();
  return { schema: RESULT_SCHEMA, date, quick: settings.isQuick, machine: describeMachine(), parts };
}

async function runCases(
  cases: readonly BenchCase[],
  isQuick: boolean,
  collector: CollectorWatch,
  progress: Progress,
  print: (text: string) => void,
): Promise<CaseResult[]> {
  const results: CaseResult[] = [];
  const onStep = (label: string): void => {
    progress.step(label);
  };
  for (const definition of cases) {
    const result = await runCase(definition, { isQuick, collector, onStep });
    progress.clear();
    print(renderCase(result));
    results.push(result);
  }
  return results;
}

async function choose(folder: string, { parts, filter }: Settings): Promise<ChosenPart[]> {
  const loaded: ChosenPart[] = [];
  for (const name of parts) {
    const part = await loadPart(folder, name);
    loaded.push({ name, part, cases: part.cases.filter((each) => matches(each, filter)) });
  }
  if (loaded.every(({ cases }) => cases.length === 0)) throw new UsageError(nothingMatches(filter, loaded));
  return loaded.filter(({ cases }) => cases.length > 0);
}

function matches({ name }: BenchCase, filter: string): boolean {
  return name.toLowerCase().includes(filter.toLowerCase());
}

function nothingMatches(filter: string, loaded: readonly ChosenPart[]): string {
  const names = loaded.flatMap(({ part }) => part.cases.map(({ name }) => `  ${name}`));
  return [`--filter: no case's name contains '${filter}'. The cases are:`, ...names].join('\n');
}

function headingOf(name: string, { title, remarks = [] }: BenchPart, isQuick: boolean): string {
  const { node, cpu, cores } = describeMachine();
  const mode = isQuick ? ' — a smoke run: targets are not judged' : '';
  return [
    wrap(`${name}: ${title}${mode}`),
    `Node ${node}, ${cpu}, ${cores} cores`,
    ...remarks.map((remark) => wrap(`  * ${remark}`, '    ')),
    '',
  ].join('\n');
}
