import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { anyCharacter } from '../../any-character.ts';
import { formatTaskOptions, parseTaskOptions } from '../../../src/tasks/entry-options.ts';
import type { TaskOptions } from '../../../src/tasks/task-options.ts';

const AT = Date.UTC(2026, 10, 1, 7, 5, 9);

describe('task options', () => {
  it('are written as asynq writes them, and read back', () => {
    const options: TaskOptions = {
      maxRetry: 5,
      queue: 'low',
      taskId: 'x',
      timeoutMs: 30 * 60_000,
      deadline: AT,
      uniqueTtlMs: 3_600_000,
      processAt: AT + 20 * 86_400_000,
      retentionMs: 86_400_000,
      group: 'g',
      headers: { k: 'v', trace: '"1"' },
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
    expect(parseTaskOptions(written)).toEqual(options);
  });

  it('are none if none are given', () => {
    expect(formatTaskOptions({})).toEqual([]);
    expect(formatTaskOptions({ queue: undefined, headers: {} })).toEqual([]);
    expect(parseTaskOptions([])).toEqual({});
  });

  it('of 0 are written too', () => {
    expect(formatTaskOptions({ maxRetry: 0, timeoutMs: 0, processInMs: 600_000 })).toEqual([
      'MaxRetry(0)',
      'Timeout(0s)',
      'ProcessIn(10m0s)',
    ]);
  });

  it('have moments in whole seconds, rounded up', () => {
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
  ])('have names quoted as Go does: %j', (queue, quoted) => {
    expect(formatTaskOptions({ queue })).toEqual([`Queue(${quoted})`]);
    expect(parseTaskOptions([`Queue(${quoted})`])).toEqual({ queue });
  });

  it('are read from what Go writes in other ways', () => {
    const written = [
      String.raw`Queue("a\x29\051\u0029\U00000029)")`,
      'Deadline(Sun Nov  1 07:05:09 +0130 2026)',
      'ProcessAt(Sun Nov  1 07:05:09 -05 2026)',
      'Timeout(1500ms)',
    ];
    expect(parseTaskOptions(written)).toEqual({
      queue: 'a)))))',
      deadline: AT - 90 * 60_000,
      processAt: AT + 5 * 3_600_000,
      timeoutMs: 1_500,
    });
  });
});

describe('B16: an option that asynq could stumble over', () => {
  /** asynq's parseOption: the name ends at the first '(', the argument at the first ')'. */
  function asAsynqCuts(option: string): readonly [string, string] {
    const start = option.indexOf('(');
    const end = option.indexOf(')');
    if (start === -1 || end === -1) throw new Error('panic: slice bounds out of range');
    return [option.slice(0, start), option.slice(start + 1, end)];
  }

  test.each(['a)b', '(', ')', 'x(y)z', ')('])('is written so that it reads all of it: %s', (name) => {
    const options = { queue: name, taskId: name, group: name, headers: { [name]: name } };
    const cut = formatTaskOptions(options).map(asAsynqCuts);
    expect(cut.map(([option]) => option)).toEqual(['Queue', 'TaskID', 'Group', 'Header']);
    expect(parseTaskOptions(cut.map(([option, argument]) => `${option}(${argument})`))).toEqual(options);
  });

  it('is left out when it is read: one bad string in a shared Redis does no harm', () => {
    const bad = [
      '',
      'Queue',
      'Queue(',
      'Queue)',
      ')Queue(',
      '()',
      'Queue()',
      'Queue(low)',
      'Queue("low)',
      String.raw`Queue("\q")`,
      String.raw`Queue("a" "b")`,
      'MaxRetry(x)',
      'MaxRetry(-1)',
      'Timeout(soon)',
      'Deadline(tomorrow)',
      'Deadline(Sun Nov  1 07:05:09 CST 2026)',
      'Deadline(Sun Nxv  1 07:05:09 UTC 2026)',
      'Header([])',
      'Header(["k"])',
      'Header(["k",1])',
      'Header({)',
      'Header(null)',
      'Unknown(1)',
      'constructor(1)',
      'Group("g")',
    ];
    expect(parseTaskOptions(bad)).toEqual({ group: 'g' });
  });

  it('is never thrown at, whatever it is', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.oneof(
            fc.string({ unit: anyCharacter }),
            fc.string({ unit: fc.constantFrom(...Array.from('Queue("\\x29)[]')) }),
          ),
        ),
        (written) => {
          parseTaskOptions(written);
        },
      ),
    );
  });

  it('comes back as it was', () => {
    const name = fc.string({ minLength: 1, unit: anyCharacter });
    const seconds = fc.integer({ min: 0, max: 4e9 }).map((value) => value * 1_000);
    const options = fc.record<TaskOptions>(
      {
        queue: name,
        taskId: name,
        group: name,
        maxRetry: fc.nat(),
        timeoutMs: fc.nat(),
        deadline: seconds,
        processAt: seconds,
        headers: fc.dictionary(name, fc.string({ unit: anyCharacter }), { minKeys: 1 }),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(options, (given) => {
        const written = formatTaskOptions(given);
        expect(parseTaskOptions(written)).toEqual(given);
        expect(
          parseTaskOptions(written.map(asAsynqCuts).map(([option, rest]) => `${option}(${rest})`)),
        ).toEqual(given);
      }),
    );
  });
});
