import type { QueueKeys } from './keys.ts';
import type { RedisAccess } from './redis-access.ts';
import { secondsUp } from './redis-time.ts';
import { listOf } from './replies.ts';
import type { ScriptArgument } from './script.ts';
import { EXTEND_LEASES } from './scripts/extend-leases.ts';

/** What Redis knows a lease by. */
export interface LeaseId {
  readonly id: string;
  readonly epoch: number;
}

/**
 * Leases of a queue hold until `untilMs`, in one script: a thousand at most.
 *
 * @returns those that are lost.
 */
export async function extendLeases<T extends LeaseId>(
  redis: Pick<RedisAccess, 'run'>,
  { lease, taskPrefix }: QueueKeys,
  leases: readonly T[],
  untilMs: number,
): Promise<T[]> {
  const args: ScriptArgument[] = [taskPrefix, secondsUp(untilMs)];
  for (const { id, epoch } of leases) args.push(id, epoch);
  const outcomes = listOf(await redis.run(EXTEND_LEASES, [lease], args));
  return leases.filter((_, at) => outcomes[at] !== 1);
}
