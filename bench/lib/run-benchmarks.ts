/** One whole run: chooses cases of the parts, runs them, and prints each table as soon as it is complete. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Presets, SingleBar } from 'cli-progress';
import { CollectorWatch } from './collector.ts';
import type { Settings } from './command-line.ts';
import { describeMachine } from './machine.ts';
import { trackSharedMemories } from './memory.ts';
import type { BenchPart } from './part.ts';
import { UsageError } from './program.ts';
import { newResult, type BenchResult, type CaseResult, type PartResult } from './result.ts';
import { runCase, type RunOptions } from './run-case.ts';
import { renderCase, wrap } from './terminal.ts';

const SUFFIX = '.bench.ts';

/** Every `NAME.bench.ts` in the folder is a part. */
export function partNamesIn(folder: string): string[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith(SUFFIX))
    .map((file) => file.slice(0, -SUFFIX.length))
    .sort();
}

export interface ChosenPart extends BenchPart {
  readonly name: string;
}

/**
 * Reads the tables of cases, which needs no build. @returns the parts with the cases that the filter matches.
 *
 * @throws UsageError - it matches none.
 */
export async function chooseCases(
  folder: string,
  { parts, filter = '' }: Pick<Settings, 'parts' | 'filter'>,
): Promise<ChosenPart[]> {
  const loaded = await Promise.all(
    parts.map(async (name) => {
      const { part } = (await import(pathToFileURL(join(folder, name + SUFFIX)).href)) as { part: BenchPart };
      return { name, ...part };
    }),
  );
  const chosen = loaded
    .map((part) => ({
      ...part,
      cases: part.cases.filter(({ name }) => name.toLowerCase().includes(filter.toLowerCase())),
    }))
    .filter(({ cases }) => cases.length > 0);
  if (chosen.length > 0) return chosen;
  const names = loaded.flatMap(({ cases }) => cases.map(({ name }) => `  ${name}`));
  throw new UsageError(
    [`--filter: no case's name contains '${filter}'. The cases are:`, ...names].join('\n'),
  );
}

export async function runBenchmarks(
  chosen: readonly ChosenPart[],
  isQuick: boolean,
  print: (text: string) => void,
): Promise<BenchResult> {
  trackSharedMemories();
  const collector = new CollectorWatch();
  const bar = newProgressBar();
  const onStep: RunOptions['onStep'] = (label, done, steps) => {
    if (!process.stderr.isTTY) return;
    if (!bar.isActive) bar.start(steps, done, { label });
    bar.update(done, { label });
    bar.render();
  };
  const parts: PartResult[] = [];
  for (const { name, title, remarks, cases } of chosen) {
    print(headingOf(name, title, remarks, isQuick));
    const results: CaseResult[] = [];
    for (const definition of cases) {
      const result = await runCase(definition, { isQuick, collector, onStep });
      bar.stop(); // removes it
      print(renderCase(result));
      results.push(result);
    }
    parts.push({ name, title, remarks, cases: results });
  }
  collector.stop();
  return newResult(isQuick, describeMachine(), parts);
}

function headingOf(name: string, title: string, remarks: readonly string[], isQuick: boolean): string {
  const { node, cpu, cores } = describeMachine();
  const mode = isQuick ? ' — a smoke run: targets are not judged' : '';
  return [
    wrap(`${name}: ${title}${mode}`),
    `Node ${node}, ${cpu}, ${cores} cores`,
    ...remarks.map((remark) => wrap(`  * ${remark}`, '    ')),
    '',
  ].join('\n');
}

/** For the steps of a case: on stderr, if that is a terminal. */
function newProgressBar(): SingleBar {
  return new SingleBar(
    {
      stream: process.stderr,
      format: ' {bar} {value}/{total}  {label}',
      barsize: 24,
      clearOnComplete: true,
      hideCursor: true,
      // Next to never: only a step draws the bar, so its own timer does not wake a process that is being measured.
      fps: 1e-6,
    },
    Presets.shades_classic,
  );
}
