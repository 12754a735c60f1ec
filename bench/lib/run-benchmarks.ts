/** One whole run: loads the parts, runs their cases, and prints each table as soon as it is complete. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Presets, SingleBar } from 'cli-progress';
import { wrap } from './wrap.ts';
import { CollectorWatch } from './collector.ts';
import type { Settings } from './command-line.ts';
import { describeMachine } from './machine.ts';
import { trackSharedMemories } from './memory.ts';
import type { BenchCase, BenchPart } from './part.ts';
import { UsageError } from './program.ts';
import { newResult, type BenchResult, type CaseResult, type PartResult } from './result.ts';
import { runCase, stepsOf } from './run-case.ts';
import { renderCase } from './terminal.ts';

const SUFFIX = '.bench.ts';

/** Every `NAME.bench.ts` in the folder is a part. */
export function partNamesIn(folder: string): string[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith(SUFFIX))
    .map((file) => file.slice(0, -SUFFIX.length))
    .sort();
}

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
  trackSharedMemories();
  const { quick: isQuick = false } = settings;
  const chosen = await choose(folder, settings);
  const steps = chosen.flatMap(({ cases }) => cases.map((each) => stepsOf(each, { isQuick })));
  const progress = new Progress(steps.reduce((sum, each) => sum + each, 0));
  const collector = new CollectorWatch();
  const onStep = (label: string): void => progress.step(label);
  const parts: PartResult[] = [];
  for (const { name, part, cases } of chosen) {
    print(headingOf(name, part, isQuick));
    const results: CaseResult[] = [];
    for (const definition of cases) {
      const result = await runCase(definition, { isQuick, collector, onStep });
      progress.clear();
      print(renderCase(result));
      results.push(result);
    }
    parts.push({ name, title: part.title, remarks: part.remarks ?? [], cases: results });
  }
  collector.stop();
  return newResult(isQuick, describeMachine(), parts);
}

async function choose(folder: string, { parts, filter = '' }: Settings): Promise<ChosenPart[]> {
  const loaded: ChosenPart[] = [];
  for (const name of parts) {
    const url = pathToFileURL(join(folder, name + SUFFIX)).href;
    const { part } = (await import(url)) as { part?: BenchPart };
    if (part === undefined) throw new Error(`bench/${name}${SUFFIX} must export 'part', a BenchPart`);
    const matches = (each: BenchCase): boolean => each.name.toLowerCase().includes(filter.toLowerCase());
    loaded.push({ name, part, cases: part.cases.filter(matches) });
  }
  const chosen = loaded.filter(({ cases }) => cases.length > 0);
  if (chosen.length > 0) return chosen;
  const names = loaded.flatMap(({ part }) => part.cases.map(({ name }) => `  ${name}`));
  throw new UsageError(
    [`--filter: no case's name contains '${filter}'. The cases are:`, ...names].join('\n'),
  );
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

/** A progress bar on stderr if that is a terminal. */
class Progress {
  readonly #total: number;
  readonly #bar = new SingleBar(
    {
      stream: process.stderr,
      format: ' {bar} {value}/{total}  {label}',
      barsize: 24,
      clearOnComplete: true,
      hideCursor: true,
      // Next to never: only `step` draws the bar, so its own timer does not wake a process that is being measured.
      fps: 1e-6,
    },
    Presets.shades_classic,
  );
  #done = 0;

  constructor(total: number) {
    this.#total = total;
  }

  /** Shows that one more contestant starts its round. */
  step(label: string): void {
    if (!process.stderr.isTTY) return;
    if (!this.#bar.isActive) this.#bar.start(this.#total, this.#done, { label });
    this.#bar.update(this.#done, { label });
    this.#bar.render();
    this.#done++;
  }

  /** Removes the bar, so that a table can be printed; the next step shows it again. */
  clear(): void {
    this.#bar.stop();
  }
}
