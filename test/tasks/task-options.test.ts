import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatGoDuration, parseGoDuration } from '../../src/tasks/go-text.ts';
import { mergeTaskOptions, requireTaskOptions, type TaskOptions } from '../../src/tasks/task-options.ts';
import { formatTaskOptions } from '../../src/tasks/scheduler/scheduled-entry.ts';
import { anyCharacter } from '../any-character.ts';
import { testProperty } from '../runs.ts';

const AT = Date.UTC(2026, 10, 1, 7, 5, 9);

/** Reads an option as asynq's parseOption: the name ends at the first '(', the argument at the first ')'. */
function cut(option: string): readonly [name: string, argument: string] {
  const start = option.indexOf('(');
  const end = option.indexOf(')');
  if (start === -1 || end === -1) throw new Error('panic: slice bounds out of range');
  return [option.slice(0, start), option.slice(start + 1, end)];
}

const LETTERS: Record<string, string> = { a: '\u0007', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' };

/** Reads a string that Go's `%q` has written. */
function unquote(quoted: string): string {
  return quoted
    .slice(1, -1)
    .replaceAll(
      /\\(?:x(..)|u(....)|U(.{8})|(.))/gu,
      (_, x?: string, u?: string, long?: string, letter?: string) => {
        const hex = x ?? u ?? long;
        if (hex !== undefined) return String.fromCodePoint(Number.parseInt(hex, 16));
        return LETTERS[letter ?? ''] ?? letter ?? '';
      },
    );
}

const READERS: Record<string, (argument: string) => TaskOptions> = {
  MaxRetry: (argument) => ({ maxRetry: Number(argument) }),
  Queue: (argument) => ({ queue: unquote(argument) }),
  TaskID: (argument) => ({ taskId: unquote(argument) }),
  Timeout: (argument) => ({ timeoutMs: parseGoDuration(argument) }),
  Deadline: (argument) => ({ deadline: Date.parse(argument) }),
  Unique: (argument) => ({ uniqueTtlMs: parseGoDuration(argument) }),
  ProcessAt: (argument) => ({ processAt: Date.parse(argument) }),
  ProcessIn: (argument) => ({ processInMs: parseGoDuration(argument) }),
  Retention: (argument) => ({ retentionMs: parseGoDuration(argument) }),
  Group: (argument) => ({ group: unquote(argument) }),
  Header: (argument) => {
    const [name, value] = JSON.parse(argument) as [string, string];
    return { headers: { [name]: value } };
  },
};

/** Reads options as an independent reader would, after the cut. */
function read(written: readonly string[]): TaskOptions {
  let options: TaskOptions = {};
  for (const [name, argument] of written.map(cut)) {
    const more = READERS[name]?.(argument);
    const headers = { ...options.headers, ...more?.headers };
    options = { ...options, ...more, ...(more?.headers && { headers }) };
  }
  return options;
}

describe('formatTaskOptions', () => {
  it('formatTaskOptions writes each option as asynq does', () => {
    const options: TaskOptions = {
      ...{ maxRetry: 5, queue: 'low', taskId: 'x', timeoutMs: 30 * 60_000, deadline: AT },
      ...{ uniqueTtlMs: 3_600_000, processAt: AT + 20 * 86_400_000, retentionMs: 86_400_000 },
      ...{ group: 'g', headers: { k: 'v', trace: '"1"' } },
    };
    const written = [
      'MaxRetry(5)',
      'Queue("low")',
      'TaskID("x")',
      'Timeout(30m0s)',
      'Deadline(Sun Nov  1 07:05:09 UTC 2026)',
      'Unique(1h0m0s)',
      'ProcessAt(Sat Nov 21 07:05:09 UTC 2026)',
      'Retention(24h0m0s)',
      'Group("g")',
      'Header(["k","v"])',
      'Header(["trace","\\"1\\""])',
    ];
    expect(formatTaskOptions(options)).toEqual(written);
    expect(read(written)).toEqual(options);
  });

  it('formatTaskOptions writes nothing for options that are missing, undefined or empty', () => {
    expect(formatTaskOptions({})).toEqual([]);
    expect(formatTaskOptions({ queue: undefined, headers: {} })).toEqual([]);
  });

  it('formatTaskOptions writes options of 0', () => {
    expect(formatTaskOptions({ maxRetry: 0, timeoutMs: 0, processInMs: 600_000 })).toEqual([
      'MaxRetry(0)',
      'Timeout(0s)',
      'ProcessIn(10m0s)',
    ]);
  });

  it('formatTaskOptions rounds a time up to a whole second', () => {
    expect(formatTaskOptions({ deadline: new Date(AT + 1) })).toEqual([
      'Deadline(Sun Nov  1 07:05:10 UTC 2026)',
    ]);
  });

  it.each([
    ['naïve 日本 🐈', '"naïve 日本 🐈"'],
    ['a "b" \\ c', String.raw`"a \"b\" \\ c"`],
    ['\u0000\u0007\b\f\n\r\t\v\u007f', String.raw`"\x00\a\b\f\n\r\t\v\x7f"`],
    ['\u00a0\u200b\u2028\ufeff', String.raw`"\u00a0\u200b\u2028\ufeff"`],
    ['\u{e0001}', String.raw`"\U000e0001"`],
  ])('formatTaskOptions quotes a name as Go does: %j', (queue, quoted) => {
    expect(formatTaskOptions({ queue })).toEqual([`Queue(${quoted})`]);
    expect(read([`Queue(${quoted})`])).toEqual({ queue });
  });

  it.each(['a)b', '(', ')', 'x(y)z', ')('])(
    "formatTaskOptions writes a name so that asynq's cuts leave it whole: %s",
    (name) => {
      const options = { queue: name, taskId: name, group: name, headers: { [name]: name } };
      const written = formatTaskOptions(options);
      expect(written.map((option) => cut(option)[0])).toEqual(['Queue', 'TaskID', 'Group', 'Header']);
      expect(read(written)).toEqual(options);
    },
  );

  it('formatTaskOptions writes options that can be read back as they were', () => {
    const name = fc.string({ minLength: 1, unit: anyCharacter });
    const seconds = fc.integer({ min: 0, max: 4e9 }).map((value) => value * 1_000);
    const options = fc.record<TaskOptions>(
      {
        ...{ queue: name, taskId: name, group: name, maxRetry: fc.nat(), timeoutMs: fc.nat() },
        ...{ deadline: seconds, processAt: seconds },
        headers: fc.dictionary(name, fc.string({ unit: anyCharacter }), { minKeys: 1 }),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(options, (given) => {
        expect(read(formatTaskOptions(given))).toEqual(given);
      }),
    );
  });
});

it('mergeTaskOptions replaces processAt by processInMs, which exclude each other', () => {
  expect(mergeTaskOptions({ processAt: 5 }, { processInMs: 6 })).toEqual({ processInMs: 6 });
  expect(mergeTaskOptions({ processInMs: 6 }, { processAt: 5 })).toEqual({ processAt: 5 });
  expect(mergeTaskOptions({ processInMs: 6 }, { queue: 'low' })).toEqual({ processInMs: 6, queue: 'low' });
});

it('requireTaskOptions checks the getters of a class, too', () => {
  class Options {
    get maxRetry(): number {
      return -1;
    }
  }
  expect(requireTaskOptions.bind(undefined, 'Task', new Options())).toThrow(/^options.maxRetry must be .*-1/);
});

const HOUR_MS = 3_600_000;

/** What Go prints for each: taken from time.Duration's documentation and its String method. */
const WRITTEN: readonly (readonly [number, string])[] = [
  [0, '0s'],
  [0.000001, '1ns'],
  [0.0011, '1.1µs'],
  [2.2, '2.2ms'],
  [300, '300ms'],
  [999.999999, '999.999999ms'],
  [1_000, '1s'],
  [1_500, '1.5s'],
  [3_300, '3.3s'],
  [60_000, '1m0s'],
  [245_000, '4m5s'],
  [245_001, '4m5.001s'],
  [30 * 60_000, '30m0s'],
  [1.5 * HOUR_MS, '1h30m0s'],
  [24 * HOUR_MS, '24h0m0s'],
  [5 * HOUR_MS + 6 * 60_000 + 7_001, '5h6m7.001s'],
  [-1_500, '-1.5s'],
];

describe('a Go duration', () => {
  it.each(WRITTEN)('a Go duration of %d ms is written %s, and read back', (ms, text) => {
    expect(formatGoDuration(ms)).toBe(text);
    expect(parseGoDuration(text)).toBe(ms);
  });

  it.each([
    ['0', 0],
    ['+5s', 5_000],
    ['1h', HOUR_MS],
    ['1.1h', 1.1 * HOUR_MS],
    ['.5s', 500],
    ['5.s', 5_000],
    ['1h15m30.918s', HOUR_MS + 15 * 60_000 + 30_918],
    ['10us', 0.01],
    ['10μs', 0.01],
    ['1m1m', 120_000],
  ])('a Go duration is also read from %s', (text, ms) => {
    expect(parseGoDuration(text)).toBeCloseTo(ms, 6);
  });

  it.each([
    '',
    '3',
    '-',
    's',
    '.s',
    '1 s',
    '1S',
    '1d',
    '--1s',
    '1h x',
    '1e3s',
    ' 1s',
    '2562048h',
    '9'.repeat(400) + 'h',
  ])('a Go duration is not read from "%s"', (text) => {
    expect(parseGoDuration(text)).toBeUndefined();
  });

  it('a Go duration longer than Go can hold is written as the longest', () => {
    expect(formatGoDuration(8.64e15)).toBe('2562047h47m16.854775807s');
    expect(parseGoDuration('2562047h47m16.854775807s')).toBeGreaterThan(9e12);
  });

  testProperty(
    'a Go duration of whole milliseconds survives being written and read',
    fc.property(fc.integer({ min: 0, max: 9e12 }), (ms) => {
      expect(parseGoDuration(formatGoDuration(ms))).toBe(ms);
    }),
    1_000,
  );
});
