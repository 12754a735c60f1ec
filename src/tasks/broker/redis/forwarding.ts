import { requireIntegerAtLeast } from '../../../core/validate.ts';
import type { RedisAccess } from './redis-access.ts';
import { nanosOf, secondsDown, secondsUp } from './redis-time.ts';
import { listOf, numberOf } from './replies.ts';
import { DELETE_EXPIRED } from './scripts/delete-expired.ts';
import { FORWARD } from './scripts/forward.ts';
import { RECLAIM_SETS } from './scripts/reclaim-sets.ts';

/** What one script moves at most. */
const TASKS_PER_SCRIPT = 500;
const SETS_PER_SCRIPT = 10;

/** The earliest first. O(what is due). */
export async function forward(access: RedisAccess, queues: readonly string[]): Promise<number> {
  const counts = await Promise.all([...new Set(queues)].map((queue) => forwardQueue(access, queue)));
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Sets that were held for too long. */
export async function reclaimSets(access: RedisAccess, queues: readonly string[]): Promise<number> {
  let count = 0;
  for (const queue of new Set(queues)) {
    const { aggregationSets, groups, groupPrefix, workChannel } = access.keysOf(queue);
    for (let sets = SETS_PER_SCRIPT; sets === SETS_PER_SCRIPT;) {
      const args = [secondsDown(access.wallNowMs), groupPrefix, SETS_PER_SCRIPT, workChannel];
      const reply = listOf(await access.run(RECLAIM_SETS, [aggregationSets, groups], args));
      count += numberOf(reply[0]);
      sets = numberOf(reply[1]);
    }
  }
  return count;
}

export async function deleteExpired(
  access: RedisAccess,
  queues: readonly string[],
  limit: number,
): Promise<number> {
  requireIntegerAtLeast('limit', 1, limit);
  const { maxArchived, archiveRetentionMs } = access.options;
  let count = 0;
  for (const queue of new Set(queues)) {
    const { completed, archived, taskPrefix, settledChannel } = access.keysOf(queue);
    const nowMs = access.wallNowMs;
    const reply = await access.run(
      DELETE_EXPIRED,
      [completed, archived],
      [
        secondsDown(nowMs),
        taskPrefix,
        limit,
        secondsDown(nowMs - archiveRetentionMs),
        maxArchived,
        settledChannel,
      ],
    );
    count += numberOf(reply);
  }
  return count;
}

async function forwardQueue(access: RedisAccess, queue: string): Promise<number> {
  const { scheduled, retry, pending, groups, taskPrefix, groupPrefix, workChannel } = access.keysOf(queue);
  let count = 0;
  for (let looked = TASKS_PER_SCRIPT; looked === TASKS_PER_SCRIPT;) {
    const nowMs = access.wallNowMs;
    const reply = listOf(
      await access.run(
        FORWARD,
        [scheduled, retry, pending, groups],
        [
          secondsDown(nowMs),
          nanosOf(nowMs),
          secondsUp(nowMs),
          taskPrefix,
          groupPrefix,
          TASKS_PER_SCRIPT,
          workChannel,
        ],
      ),
    );
    count += numberOf(reply[0]);
    looked = numberOf(reply[1]);
  }
  return count;
}
