import { nameOfKey } from '../core/errors.ts';
import { requireInternals } from '../core/validate.ts';
import { isTimed, ownerOf, serialOf, type DelayedOperation } from './delayed-operation.ts';
import { INTERNALS, type DelayedOperationPurgatory } from './purgatory.ts';
import { firstWatcherOf, type Watcher, type WatcherList } from './watchers.ts';

/**
 * Checks the whole structure of a purgatory: every link under every key in both directions, every operation's chain
 * of watchers, the order under each key, that no completed operation is watched, and every gauge. For tests: O(watchers).
 *
 * It may be called at any time, also from inside an operation.
 *
 * @throws Error - for the first invariant that does not hold. TypeError `ERR_INVALID_ARG_TYPE` - not a purgatory.
 */
export function checkPurgatory<K, T extends DelayedOperation>(
  purgatory: DelayedOperationPurgatory<K, T>,
): void {
  requireInternals('purgatory', 'a DelayedOperationPurgatory', INTERNALS, purgatory);
  const pending = purgatory[INTERNALS]();
  const { watchers } = pending;
  const operations = new Set<DelayedOperation>();
  let size = 0;
  for (const [key, list] of watchers.lists.all) {
    const under = checkList(list, key);
    size += under.length;
    for (const operation of under) operations.add(operation);
  }
  let timed = 0;
  for (const operation of operations) {
    ensure(ownerOf(operation) === pending, 'a watched operation refers to another purgatory');
    ensure(!operation.isCompleted, 'a completed operation is still watched');
    checkChain(operation, watchers.lists.all);
    if (isTimed(operation)) timed++;
  }
  ensure(purgatory.watched === size, `watched is ${purgatory.watched}, but there are ${size} watch entries`);
  ensure(
    purgatory.numDelayed === timed,
    `numDelayed is ${purgatory.numDelayed}, but ${timed} timeouts are pending`,
  );
  const keys = [...watchers.lists.all.values()].filter((list) => !list.isEmpty).length;
  const empty = watchers.lists.all.size - keys;
  const { emptyKeys } = watchers.lists;
  ensure(emptyKeys === empty, `emptyKeys is ${emptyKeys}, but ${empty} keys have no watcher`);
  ensure(
    purgatory.watchedKeys === keys,
    `watchedKeys is ${purgatory.watchedKeys}, but there are ${keys} keys`,
  );
}

function ensure(holds: boolean, claim: string): asserts holds {
  if (!holds) throw new Error(`checkPurgatory: ${claim}`);
}

/** Checks the list of a key. @returns its operations. */
function checkList(list: WatcherList, key: unknown): DelayedOperation[] {
  const where = nameOfKey(key);
  const operations: DelayedOperation[] = [];
  ensure(
    list.key === key || Number.isNaN(key),
    `${where}: its list is that of another key: ${nameOfKey(list.key)}`,
  );
  let latest = 0;
  let prev: Watcher | WatcherList = list;
  for (let node = list.next; node !== list; node = node.next) {
    const watcher = node as Watcher;
    ensure(watcher.prev === prev, `${where}: a watcher does not point back to the one before`);
    ensure(watcher.list === list, `${where}: a watcher refers to another key`);
    const serial = serialOf(watcher.operation);
    ensure(serial > latest, `${where}: operations are out of order, or one is there twice`);
    ensure(isInChain(watcher), `${where}: an operation has no link to its watcher`);
    operations.push(watcher.operation);
    latest = serial;
    prev = watcher;
  }
  ensure(list.prev === prev, `${where}: the tail of the list is wrong`);
  return operations;
}

function isInChain(sought: Watcher): boolean {
  for (let watcher = firstWatcherOf(sought.operation); watcher !== undefined; watcher = watcher.sibling) {
    if (watcher === sought) return true;
  }
  return false;
}

/** Every watcher of the operation must be linked under its key. */
function checkChain(operation: DelayedOperation, lists: ReadonlyMap<unknown, WatcherList>): void {
  for (let watcher = firstWatcherOf(operation); watcher !== undefined; watcher = watcher.sibling) {
    ensure(watcher.operation === operation, 'an operation has the watcher of another one');
    const where = nameOfKey(watcher.list.key);
    ensure(
      lists.get(watcher.list.key) === watcher.list,
      `${where}: its list is not the one that the key leads to`,
    );
    const isLinked = watcher.next.prev === watcher && watcher.prev.next === watcher;
    ensure(isLinked, `${where}: an operation has a watcher that is not linked`);
  }
}
