import { describe, expect, it } from 'vitest';
import {
  FIRST_STATE,
  NO_DATA,
  type DashData,
  type DashState,
} from '../../../src/cli/tasks/dash/dash-state.ts';
import { dashLines, rowsThatFit, type DashFrame } from '../../../src/cli/tasks/dash/dash-view.ts';
import type { QueueView, TaskView } from '../../../src/tasks/http/asynqmon-json.ts';
import { START_MS } from '../../tasks/support/bench.ts';

const FRAME: DashFrame = {
  ...{ name: 'there', isReading: false, error: undefined },
  ...{ readAtMs: START_MS, nowMs: START_MS, height: 12 },
};

const COUNTS = { active: 0, pending: 20, aggregating: 0, scheduled: 0, retry: 0, archived: 0, completed: 0 };
const NUMBERS = { size: 20, groups: 0, latencyMs: 0, memoryUsageBytes: 0, processed: 0, failed: 0 };
const QUEUE: QueueView = {
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
const DATA: DashData = { ...NO_DATA, queues: [QUEUE], tasks: TASKS };

const texts = (state: DashState, frame: DashFrame = FRAME, data = DATA): string[] =>
  dashLines(state, data, frame).map(({ text }) => text.trimEnd());

describe('dashLines', () => {
  it('has no more lines than the screen, with an error too, and the selected row among them', () => {
    expect(rowsThatFit(FRAME.height)).toBe(4);
    for (const row of [0, 7, 19]) {
      const lines = dashLines({ ...IN_QUEUE, row }, DATA, { ...FRAME, error: 'lost\u001b' });
      expect(lines).toHaveLength(12);
      expect(lines.filter(({ style }) => style === 'inverse').map(({ text }) => text.trimEnd())).toEqual([
        `> t${row}  work`.replace(/^> (t\d) /, '> $1  '),
      ]);
      expect(lines.at(-2)).toEqual({ text: 'lost\\x1b', style: 'red' });
    }
  });

  it('shows a window of the list', () => {
    expect(texts({ ...IN_QUEUE, row: 7 })).toEqual([
      'escapement tasks  there  2026-11-21 12:00:00 UTC',
      '',
      'default  paused  page 1',
      ' active 0  [pending 20]  scheduled 0   retry 0   archived 0   completed 0   aggregating 0',
      '  id   type  payload',
      '  t5   work',
      '  t6   work',
      '> t7   work',
      '  t8   work',
      '',
      'j/k: row   enter: open   h/l: state   n/p: page   q: back   ?: help',
    ]);
  });

  it('distinguishes an empty list from one that is not read yet', () => {
    expect(texts(FIRST_STATE, FRAME, NO_DATA)).toContain('  there are none');
    expect(texts(FIRST_STATE, { ...FRAME, isReading: true, readAtMs: undefined }, NO_DATA)).toContain('  …');
    expect(texts({ ...IN_QUEUE, taskId: 'a' }, { ...FRAME, isReading: true }, NO_DATA)).toContain('  a …');
    expect(texts(IN_QUEUE, FRAME, NO_DATA)[3]).toContain('[pending -]');
  });

  it('fits on any screen', () => {
    expect(texts(IN_QUEUE, { ...FRAME, height: 3 })).toHaveLength(3);
    expect(texts({ ...FIRST_STATE, isHelp: true }, { ...FRAME, height: 24 }).join('\n')).toMatch(
      /ctrl-c +quit/,
    );
  });
});
