/** A million tasks that are for later: what does each take? */
import type { ScenarioCase } from '../lib/part.ts';
import { runChild } from '../lib/run-child.ts';

const BYTES_EACH = 'bytes each';
const ARMED = 'host timeouts';
const TIME_EACH = 'time each';
const MOST_BYTES = 600;
const ONE = 1;

export const scheduledCase: ScenarioCase = {
  kind: 'scenario',
  name: 'a million tasks scheduled, for the next hour to ten',
  note: 'In a process of its own. Bytes beyond the payload, which is 32 bytes of its own for each; what the promises of enqueue hold is let go.',
  size: { full: 1_000_000, quick: 10_000, of: 'tasks' },
  rounds: 1,
  metrics: [
    { name: BYTES_EACH, unit: 'bytes' },
    { name: ARMED, unit: '', isAside: true },
    { name: TIME_EACH, unit: 'ns' },
  ],
  contestants: (
    [
      ['setTimeout', 'baseline', 'an object with an id, a type and a payload, and a timeout for it.'],
      ['ours', 'ours', undefined],
    ] as const
  ).map(([name, role, note]) => ({
    name,
    role,
    ...(note === undefined ? {} : { note }),
    open: async (size: number) => {
      const program = new URL('scheduled-child.ts', import.meta.url);
      const { bytes, armed, ns, waiting } = await runChild(program, name, String(size));
      return {
        values: {
          [BYTES_EACH]: bytes ?? Number.NaN,
          [ARMED]: armed ?? Number.NaN,
          [TIME_EACH]: ns ?? Number.NaN,
        },
        problem: waiting === size ? undefined : `${String(waiting)} wait, not ${size}`,
      };
    },
  })),
  targets: [
    { kind: 'limit', contestant: 'ours', metric: BYTES_EACH, atMost: MOST_BYTES },
    { kind: 'limit', contestant: 'ours', metric: ARMED, atMost: ONE },
  ],
};
