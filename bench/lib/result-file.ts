/** Results on disk: written by `--json`, read by `--compare`. */
import { readFileSync, writeFileSync } from 'node:fs';
import { RESULT_SCHEMA, type BenchResult } from './result.ts';
import { UsageError } from './usage-error.ts';

export function writeResult(file: string, result: BenchResult): void {
  writeFileSync(file, `${JSON.stringify(result, undefined, 2)}\n`);
}

/** @throws UsageError - no such file, or not one that `--json` wrote. */
export function readResult(file: string): BenchResult {
  const value = parse(file);
  if (!isResult(value)) {
    throw new UsageError(`--compare: '${file}' is not a result of --json (schema ${RESULT_SCHEMA})`);
  }
  return value;
}

function parse(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new UsageError(`--compare: cannot read '${file}': ${(error as Error).message}`);
  }
}

function isResult(value: unknown): value is BenchResult {
  if (typeof value !== 'object' || value === null) return false;
  const { schema, parts } = value as Partial<Record<string, unknown>>;
  return schema === RESULT_SCHEMA && Array.isArray(parts);
}
