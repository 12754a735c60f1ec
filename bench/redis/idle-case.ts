/** What a worker that has nothing to do asks of Redis. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ScenarioCase, ScenarioOutcome } from '../lib/part.ts';
import { contest, emptyRedis, withConnection, withContestant } from './bench-redis.ts';
import type { OpenOn } from './contestant.ts';
import { countOthers } from './redis-counters.ts';

const CONCURRENCY = 100;
const COMMANDS = 'commands executed';
const BYTES = 'bytes';
const MS_PER_SECOND = 1_000;
/** Less is not told from nothing. */
const LEAST = 0.01;
/** Until it has said what it says once. */
const SETTLE_SHARE = 0.1;

async function play(open: OpenOn, ms: number): Promise<ScenarioOutcome> {
  const redis = await emptyRedis();
  return withContestant(open, redis, async (contestant) => {
    await contestant.start(CONCURRENCY);
    await sleep(ms * SETTLE_SHARE);
    return withConnection(redis, async (connection) => {
      const { commands, bytes } = await countOthers(connection, () => sleep(ms));
      const perSecond = (count: number): number => Math.max((count * MS_PER_SECOND) / ms, LEAST);
      return { values: { [COMMANDS]: perSecond(commands), [BYTES]: perSecond(bytes) }, problem: undefined };
    });
  });
}

export const idleCase: ScenarioCase = {
  kind: 'scenario',
  name: 'a worker that has nothing to do',
  rounds: 1,
  size: { full: 20_000, quick: 200, of: 'ms' },
  metrics: [
    { name: COMMANDS, unit: '/s' },
    { name: BYTES, unit: '/s' },
  ],
  contestants: contest((_, open) => (ms) => play(open, ms)),
};
