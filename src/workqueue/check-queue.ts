import { nameOfKey } from '../core/errors.ts';
import { requireInternals } from '../core/validate.ts';
import { INTERNALS as TIMER_INTERNALS, type SystemTimer } from '../timer/system-timer.ts';
import { NO_SLOT } from '../timer/timer-table.ts';
import { HELD, HELD_AGAIN, IDLE, QUEUED, type ItemEntry } from './item-table.ts';
import { INTERNALS, type WorkQueue, type WorkQueueInternals } from './work-queue.ts';

/**
 * Checks the whole structure of a work queue: that every entry is where it belongs by its phase, and nowhere else; that no caller
 * waits while an item is ready; every count; and, with delays, that every waiting item has an entry in the timer.
 * For tests: O(items).
 *
 * @throws Error - for the first invariant that does not hold. TypeError `ERR_INVALID_ARG_TYPE` - not a work queue.
 */
export function checkQueue<T>(queue: WorkQueue<T>): void {
  requireInternals('queue', 'a WorkQueue', INTERNALS, queue);
  const internals = queue[INTERNALS];
  const { items } = internals;
  const entries = [...items.table.all];
  for (const [key, entry] of entries) checkEntry(key, entry);
  checkReady(internals);
  const held = entries.filter(([, { phase }]) => phase === HELD || phase === HELD_AGAIN).length;
  const heldAgain = entries.filter(([, { phase }]) => phase === HELD_AGAIN).length;
  const idle = entries.filter(([, { phase }]) => phase === IDLE).length;
  ensure(items.held === held, `held is ${items.held}, but ${held} items are held`);
  ensure(
    items.heldAgain === heldAgain,
    `heldAgain is ${items.heldAgain}, but ${heldAgain} held items were added again`,
  );
  ensure(items.table.idle === idle, `idle is ${items.table.idle}, but ${idle} keys are idle`);
  ensure(items.takers === 0 || items.ready.size === 0, 'a caller waits although an item is ready');
  ensure(items.takers === 0 || !items.hasEnded, 'a caller waits although the queue has ended');
  checkWaiting(internals);
}

function ensure(holds: boolean, claim: string): asserts holds {
  if (!holds) throw new Error(`checkQueue: ${claim}`);
}

function checkEntry(key: unknown, entry: ItemEntry<unknown>): void {
  ensure(Object.is(entry.key, key) || entry.key === key, `${nameOfKey(key)}: its entry is for another key`);
  ensure([IDLE, QUEUED, HELD, HELD_AGAIN].includes(entry.phase), `${nameOfKey(key)}: its phase is invalid`);
  ensure(
    entry.phase !== IDLE || entry.item === undefined,
    `${nameOfKey(key)}: it is idle and keeps its item`,
  );
}

function checkReady<T>({ items, keyOf }: WorkQueueInternals<T>): void {
  const { table, ready } = items;
  const seen = new Set<ItemEntry<T>>();
  for (const entry of ready) {
    const where = nameOfKey(entry.key);
    ensure(table.find(entry.key) === entry, `${where}: it is ready, and its key leads elsewhere`);
    ensure(entry.phase === QUEUED, `${where}: it is ready, and not in that phase`);
    ensure(!seen.has(entry), `${where}: it is ready twice`);
    ensure(table.find(keyOf(entry.item as T)) === entry, `${where}: its item has another key`);
    seen.add(entry);
  }
  ensure(seen.size === ready.size, `${ready.size} items are ready, but there are ${seen.size}`);
  for (const [key, { phase }] of table.all) {
    ensure(
      phase !== QUEUED || seen.has(table.find(key) as ItemEntry<T>),
      `${nameOfKey(key)}: it is not in the queue`,
    );
  }
}

function checkWaiting<T>({ items, waiting, keyOf }: WorkQueueInternals<T>): void {
  if (waiting === undefined) return;
  let count = 0;
  for (const { key, item, dueAtMs, timer } of waiting.rows()) {
    const where = nameOfKey(key);
    const ownKey = keyOf(item);
    ensure(Object.is(ownKey, key) || ownKey === key, `${where}: the waiting item has another key`);
    ensure(!Number.isNaN(dueAtMs), `${where}: its due time is invalid`);
    const isParked = dueAtMs === Infinity;
    ensure(isParked || isScheduled(waiting.timer, timer), `${where}: the waiting item is in no timer`);
    count++;
  }
  ensure(waiting.size === count, `size is ${waiting.size}, but ${count} items are waiting`);
  ensure(count === 0 || !items.isShutDown, 'items are waiting although the queue is shut down');
}

/** A closed timer has no entries; the items are still in the queue. */
function isScheduled(timer: SystemTimer, id: number): boolean {
  const { wheels, runner } = timer[TIMER_INTERNALS]();
  return runner.isStopped || wheels.table.slotOf(id) !== NO_SLOT;
}
