import { expect, test } from 'vitest';
import { UsageError } from '../../../bench/lib/program.ts';
import { parseHarnessCommandLine, type HarnessSettings } from '../../../bench/purgatory/harness-command.ts';
import { runNode, type ProgramResult } from '../../run-program.ts';

let printed = '';

function parse(line: string): HarnessSettings | undefined {
  printed = '';
  const words = line.split(' ').filter((word) => word !== '');
  return parseHarnessCommandLine(words, (text) => void (printed += text));
}

const REQUIRED = '--num 1000000 --rate 100000 --timeout 200 --pct50 20 --pct75 60';

test("the harness accepts Kafka's options and has Kafka's defaults", () =>
  expect(parse(REQUIRED)).toEqual({
    workload: {
      ...{ num: 1_000_000, ratePerS: 100_000, timeoutMs: 200, pct50Ms: 20, pct75Ms: 60 },
      ...{ keys: 3, keySpaceSize: 100 },
    },
    purgatory: 'ours',
  }));

test('every default of the harness can be changed', () => {
  const line = '--keys 5 --key-space-size 1e3 --purgatory kafka';
  expect(parse(`${REQUIRED} ${line}`)).toMatchObject({
    workload: { keys: 5, keySpaceSize: 1_000 },
    purgatory: 'kafka',
  });
});

test('--help of the harness explains every option', () => {
  expect(parse('--help')).toBeUndefined();
  for (const word of ['--num', '--rate', '--timeout', '--pct50', '--pct75', '--keys', '--key-space-size']) {
    expect(printed).toContain(word);
  }
});

test.each([
  { line: '', message: "required option '--num <count>' not specified" },
  { line: `${REQUIRED} --num 1.5`, message: "'1.5' is invalid. It must be an integer > 0" },
  { line: `${REQUIRED} --rate fast`, message: "'fast' is invalid. It must be a number > 0" },
  { line: `${REQUIRED} --pct75 20`, message: '--pct75 must be > --pct50. Received 20 and 20' },
  { line: `${REQUIRED} --keys 101`, message: '--keys must be <= --key-space-size. Received 101 and 100' },
  { line: `${REQUIRED} --purgatory theirs`, message: 'Allowed choices are naive, kafka, ours' },
  { line: `${REQUIRED} --size 100`, message: "unknown option '--size'" },
  { line: `${REQUIRED} more`, message: 'too many arguments' },
])('the command line $line is rejected with a usage error', ({ line, message }) => {
  expect(() => parse(line)).toThrow(UsageError);
  expect(() => parse(line)).toThrow(message);
});

const runHarness = (line: string): ProgramResult =>
  runNode(['--import', 'tsx', 'bench/purgatory-performance.ts', ...line.split(' ')]);

test('the harness reports a usage error on stderr, measures nothing, and exits with 2', () => {
  const { status, stdout, stderr } = runHarness('--num 5');
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
  expect(stderr).toContain("error: required option '--rate <requests>' not specified");
});

test('real time: the harness prints the result line and the expired share', () => {
  const line = '--num 500 --rate 5000 --timeout 200 --pct50 20 --pct75 60 --key-space-size 100';
  const { status, stdout, stderr } = runHarness(line);
  expect(status).toBe(0);
  expect(stderr).toMatch(/^warning: measuring the sources, not a build.*\n$/);
  expect(stdout).toMatch(/^\d+\t\d+\.\d{6}\t\d+\.\d{6}\t\d+\t\d+ \d+\t\d+ \d+$/m);
  expect(stdout).toMatch(/^# expired: \d+\.\d\d %; in theory 7\.87 %$/m);
});
