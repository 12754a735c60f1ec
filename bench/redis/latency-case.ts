/** A thousand tasks a second, evenly, and a worker that has time for them: how long until each is processed? */
import type { ScenarioCase, ScenarioOutcome } from '../lib/part.ts';
import { quantileOfSorted } from '../lib/statistics.ts';
import type { Target } from '../lib/target.ts';
import { contest, emptyRedis, withContestant } from './bench-redis.ts';
import type { OpenOn } from './contestant.ts';
import { OURS } from './ours.ts';

const CONCURRENCY = 100;
const PER_SECOND = 1_000;
const P50 = 'p50 latency';
const P99 = 'p99 latency';
/** The first ones find everything cold. */
const WARM_UP_SHARE = 0.1;
const US_PER_MS = 1_000;

async function play(open: OpenOn, size: number): Promise<ScenarioOutcome> {
  return withContestant(open, await emptyRedis(), async (contestant) => {
    await contestant.start(CONCURRENCY);
    const latenciesMs = await contestant.latenciesMs(size, PER_SECOND);
    const sorted = latenciesMs.subarray(Math.ceil(size * WARM_UP_SHARE)).sort();
    return {
      values: {
        [P50]: quantileOfSorted(sorted, 0.5) * US_PER_MS,
        [P99]: quantileOfSorted(sorted, 0.99) * US_PER_MS,
      },
      problem: contestant.problem(),
    };
  });
}

function belowBullmq(metric: string): Target {
  return { kind: 'ratio', contestant: OURS, metric, atLeast: 1 };
}

export const latencyCase: ScenarioCase = {
  kind: 'scenario',
  name: 'a thousand tasks a second: from the call that enqueues to the handler',
  note: 'Enqueued whatever becomes of those before. About one comes at a time, which is as well as the host’s timers do it.',
  size: { full: 5_000, quick: 200, of: 'tasks' },
  metrics: [
    { name: P50, unit: 'µs' },
    { name: P99, unit: 'µs' },
  ],
  contestants: contest((_, open) => (size) => play(open, size)),
  targets: [belowBullmq(P50), belowBullmq(P99)],
};
