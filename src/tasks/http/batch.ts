import { inOwnTurn } from '../../core/own-turn.ts';
import { isUnavailable } from '../broker/broker-errors.ts';

/** How many tasks of a batch are on their way at once, and processed in one turn of the event loop: a millisecond or two. */
const AT_ONCE = 50;

/** The tasks of a batch, by what has come of them, in their order. */
export interface BatchOutcome {
  readonly done: readonly string[];
  readonly failed: readonly string[];
}

/**
 * Does something with each task. Once the broker is unavailable, the rest fails untried: nobody waits for all of them. The host
 * has a turn between two pieces: a broker in the process answers at once, and a body of 1 MB names 250 000 tasks.
 */
export async function doEach(
  ids: readonly string[],
  work: (id: string) => Promise<unknown>,
): Promise<BatchOutcome> {
  const done: string[] = [];
  const failed: string[] = [];
  let isHopeless = false;
  for (let at = 0; at < ids.length && !isHopeless; at += AT_ONCE) {
    const some = ids.slice(at, at + AT_ONCE);
    const outcomes = await Promise.allSettled(some.map(work));
    for (const [nth, outcome] of outcomes.entries()) {
      (outcome.status === 'fulfilled' ? done : failed).push(some[nth] ?? '');
      if (outcome.status === 'rejected') isHopeless ||= isUnavailable(outcome.reason);
    }
    await new Promise<void>(inOwnTurn);
  }
  return { done, failed: [...failed, ...ids.slice(done.length + failed.length)] };
}
