import fc from 'fast-check';
import { expect, test } from 'vitest';
import { earliestRows } from '../../../../src/tasks/broker/embedded/earliest-rows.ts';
import { QueueState } from '../../../../src/tasks/broker/embedded/queue-state.ts';
import { TaskRow } from '../../../../src/tasks/broker/embedded/task-row.ts';
import { newTask } from '../../../conformance/broker/support.ts';

test('the earliest rows are those of a list that was sorted, those of one moment in their order', () => {
  const moments = fc.array(fc.nat({ max: 9 }), { maxLength: 40 });
  fc.assert(
    fc.property(moments, fc.nat({ max: 45 }), fc.nat({ max: 45 }), (times, skip, count) => {
      const list = new QueueState('q').lists.scheduled;
      times.forEach((atMs, i) => {
        const row = new TaskRow(newTask({ id: `${i}` }).message);
        row.atMs = atMs;
        list.push(row);
      });
      const sorted = [...list].sort((a, b) => a.atMs - b.atMs);
      expect(earliestRows(list, skip, count)).toEqual(sorted.slice(skip, skip + count));
    }),
  );
});
