import { describe, expect, it } from 'vitest';
import {
  type DashData,
  type DashState,
  FIRST_STATE,
  NO_DATA,
  press,
  rowsShown,
  settle,
} from '../../../src/cli/tasks/dash/dash-state.ts';
import { type DashFrame, dashLines, rowsThatFit } from '../../../src/cli/tasks/dash/dash-view.ts';
import type { QueueView, TaskView } from '../../../src/tasks/http/asynqmon-json.ts';
import { START_MS } from '../../tasks/support/bench.ts';

const queue = (name: string): QueueView => ({ queue: name }) as QueueView;
const task = (id: string): TaskView => ({ id }) as TaskView;

const DATA: DashData = {
  ...NO_DATA,
  queues: [queue('one'), queue('two'), queue('three')],
  tasks: [task('a'), task('b')],
  groups: [
    { group: 'g', size: 1 },
    { group: 'h', size: 2 },
  ],
};

function pressed(keys: string, from: DashState = FIRST_STATE, data = DATA): DashState {
  return keys.split(' ').reduce((state, key) => press(state, key, data), from);
}

describe('press', () => {
  it('the arrow keys select a row, and none beyond the list', () => {
    expect(pressed('j')).toEqual({ ...FIRST_STATE, row: 1 });
    expect(pressed('down j j j j').row).toBe(2);
    expect(pressed('j j k').row).toBe(1);
    expect(pressed('k up').row).toBe(0);
    expect(pressed('j', FIRST_STATE, NO_DATA).row).toBe(0);
  });

  it('Enter opens a queue and a task, and q goes back to the selected rows', () => {
    const inside = pressed('j enter');
    expect(inside).toMatchObject({ queue: 'two', state: 'active', row: 0, page: 1 });
    const atTask = pressed('j return', inside);
    expect(atTask).toMatchObject({ queue: 'two', taskId: 'b' });
    expect(pressed('j k h l n enter', atTask)).toBe(atTask);
    expect(pressed('q', atTask)).toEqual(pressed('j', inside));
    expect(pressed('escape q', atTask)).toEqual(pressed('j'));
  });

  it('l and h select the states of a queue cyclically', () => {
    const inside = pressed('enter');
    expect(pressed('l', inside).state).toBe('pending');
    expect(pressed('right right left', inside).state).toBe('pending');
    expect(pressed('h', inside).state).toBe('aggregating');
    expect(pressed('h l', inside)).toEqual(inside);
    expect(pressed('l l h', FIRST_STATE)).toBe(FIRST_STATE);
  });

  it('Enter opens a group before its tasks', () => {
    const groups = pressed('enter h');
    expect(rowsShown(groups, DATA)).toBe(2);
    const inGroup = pressed('j enter', groups);
    expect(inGroup).toMatchObject({ group: 'h', taskId: undefined, row: 0 });
    expect(pressed('enter', inGroup)).toMatchObject({ group: 'h', taskId: 'a' });
    expect(pressed('enter q q', inGroup)).toEqual(pressed('j', groups));
    expect(pressed('l', inGroup)).toMatchObject({ group: undefined, state: 'active' });
    expect(pressed('l q', inGroup)).toEqual(FIRST_STATE);
  });

  it('n and p turn pages of tasks', () => {
    const inside = pressed('j enter j');
    expect(pressed('n', inside)).toMatchObject({ page: 2, row: 0 });
    expect(pressed('n n p', inside).page).toBe(2);
    expect(pressed('p', inside).page).toBe(1);
    expect(pressed('n', inside, NO_DATA).page).toBe(1);
    expect(pressed('n l', inside).page).toBe(1);
    expect(pressed('n').page).toBe(1);
  });

  it('keys do nothing in an empty list', () => {
    for (const keys of ['enter', 'x', 'enter n'])
      expect(pressed(keys, FIRST_STATE, NO_DATA)).toEqual(FIRST_STATE);
  });

  it('? shows help, and q quits', () => {
    expect(pressed('?').isHelp).toBe(true);
    expect(pressed('? q')).toEqual(FIRST_STATE);
    expect(pressed('q').isOver).toBe(true);
    expect(pressed('enter enter ? ctrl-c').isOver).toBe(true);
  });
});

it('the selected row exists after the list has changed', () => {
  expect(settle({ ...FIRST_STATE, row: 5 }, DATA).row).toBe(2);
  expect(settle({ ...FIRST_STATE, row: 5 }, NO_DATA).row).toBe(0);
  expect(settle(FIRST_STATE, DATA)).toBe(FIRST_STATE);
});

const FRAME: DashFrame = {
  ...{ name: 'there', isReading: false, error: undefined },
  ...{ readAtMs: START_MS, nowMs: START_MS, height: 12, width: 80 },
};

const COUNTS = { active: 0, pending: 20, aggregating: 0, scheduled: 0, retry: 0, archived: 0, completed: 0 };
const NUMBERS = { size: 20, groups: 0, latencyMs: 0, memoryUsageBytes: 0, processed: 0, failed: 0 };
const QUEUE: QueueView = {
  ...{ held: { concurrency: 0, rate: 0 }, runnableMs: 0 },
  queue: 'default',
  paused: true,
  ...COUNTS,
  ...NUMBERS,
  timestamp: new Date(START_MS),
};

const TASKS = Array.from({ length: 20 }, (_, nth): TaskView => {
  const shown = { payload: { shown: '' }, maxRetry: 25, retried: 0, lastError: '' };
  return { id: `t${nth}`, queue: 'default', type: 'work', state: 'pending', ...shown };
});

const IN_QUEUE: DashState = { ...FIRST_STATE, queue: 'default', state: 'pending' };
const LISTED: DashData = { ...NO_DATA, queues: [QUEUE], tasks: TASKS };

const texts = (state: DashState, frame: DashFrame = FRAME, data = LISTED): string[] =>
  dashLines(state, data, frame).map(({ text }) => text.trimEnd());

describe('dashLines', () => {
  it('the output has no more lines than the screen, also with an error, and the selected row is among them', () => {
    const frame = { ...FRAME, height: 13, error: 'lost\u001b' };
    expect(rowsThatFit(frame.height)).toBe(4);
    for (const row of [0, 7, 19]) {
      const lines = dashLines({ ...IN_QUEUE, row }, LISTED, frame);
      expect(lines).toHaveLength(13);
      expect(lines.filter(({ style }) => style === 'inverse').map(({ text }) => text.trimEnd())).toEqual([
        `> t${row}  work`.replace(/^> (t\d) /, '> $1  '),
      ]);
      expect(lines.at(-2)).toEqual({ text: 'lost\\x1b', style: 'red' });
    }
  });

  it('the screen shows a window of the list', () => {
    expect(texts({ ...IN_QUEUE, row: 7 }, { ...FRAME, height: 13 })).toEqual([
      'escapement tasks  there  2026-11-21 12:00:00 UTC',
      '',
      'default  paused  page 1',
      ' active 0  [pending 20]  scheduled 0   retry 0   archived 0   completed 0',
      ' aggregating 0',
      '  id   type  payload',
      '  t5   work',
      '  t6   work',
      '> t7   work',
      '  t8   work',
      '',
      'j/k: row   enter: open   h/l: state   n/p: page   q: back   ?: help',
    ]);
  });

  it('the screen shows how many tasks of a queue are held back, and by which limits', () => {
    const held = { ...QUEUE, paused: false, held: { concurrency: 12, rate: 3 } };
    expect(texts(IN_QUEUE, FRAME, { ...LISTED, queues: [held] })[2]).toBe(
      'default  held: 12 by concurrency, 3 by rate  page 1',
    );
  });

  it('the screen distinguishes an empty list from one that is not read yet', () => {
    expect(texts(FIRST_STATE, FRAME, NO_DATA)).toContain('  there are none');
    expect(texts(FIRST_STATE, { ...FRAME, isReading: true, readAtMs: undefined }, NO_DATA)).toContain('  …');
    expect(texts({ ...IN_QUEUE, taskId: 'a' }, { ...FRAME, isReading: true }, NO_DATA)).toContain('  a …');
    expect(texts(IN_QUEUE, FRAME, NO_DATA)[3]).toContain('[pending -]');
  });

  it('lists and states fit the width of the screen: long texts are cut, and no numbers', () => {
    const counts = Object.fromEntries(Object.keys(COUNTS).map((state) => [state, 1_234_567]));
    const held = { concurrency: 1_234, rate: 0 };
    const many = { ...QUEUE, ...counts, size: 86_419, queue: 'invoices-of-the-european-union', held };
    const lastError = 'https://hooks.example.com/orders: 503 😀'.repeat(3);
    const tasks = TASKS.map((one) => ({ ...one, id: 'e331bdcf-5f71-4304-bef5-5b5e5f1323df', lastError }));
    const data = { ...LISTED, queues: [many], tasks };
    const frame = { ...FRAME, height: 24 };
    expect(texts(FIRST_STATE, frame, data)[3]).toMatch(/^> invoi… {2}paused {2}86,419 {2}1,234 .* 0 bytes$/);
    expect(texts(FIRST_STATE, { ...frame, width: 120 }, data)[3]).toContain(` ${many.queue}  paused `);
    const screens = [80, 81, 82, 83].flatMap((width) =>
      (['pending', 'retry', 'archived'] as const).map((state) => ({
        width,
        lines: texts({ ...IN_QUEUE, state }, { ...frame, width }, data).slice(3, -2),
      })),
    );
    for (const { width, lines } of screens) {
      expect(lines.filter(({ length }) => length > width)).toEqual([]);
      expect(lines.join('\n')).not.toContain('\\u'); // half of a surrogate pair
    }
  });

  it.each([
    ...[['漢', 2] as const, ['ｆ', 2] as const, ['한', 2] as const, ['😀', 2] as const],
    ...[['ｶ', 1] as const, ['\u{1d400}', 1] as const],
  ])('lists of names of %s fit the width of the screen', (character, columns) => {
    const name = character.repeat(40);
    const queues = [
      { ...QUEUE, queue: character.repeat(10) },
      { ...QUEUE, queue: name },
    ];
    const tasks = TASKS.map((one) => ({ ...one, id: name, type: name, payload: { shown: name } }));
    const frame = { ...FRAME, height: 24 };
    const data = { ...LISTED, queues, tasks };
    const rows = [
      ...texts(FIRST_STATE, frame, data).slice(2, -2),
      ...texts(IN_QUEUE, frame, data).slice(5, -2),
    ];
    const widths = rows.map((row) => row.replaceAll(character, '#'.repeat(columns)).length);
    expect(Math.max(...widths)).toBeLessThanOrEqual(80);
    expect(rows[1]).toMatch(/ 0 bytes$/);
  });

  it('the output fits on any screen', () => {
    expect(texts(IN_QUEUE, { ...FRAME, height: 3 })).toHaveLength(3);
    expect(texts({ ...FIRST_STATE, isHelp: true }, { ...FRAME, height: 24 }).join('\n')).toMatch(
      /ctrl-c +quit/,
    );
  });
});
