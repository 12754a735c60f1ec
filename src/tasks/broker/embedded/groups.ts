import { randomUUID } from 'node:crypto';
import type { Operations } from '../broker-base.ts';
import { setLost } from '../broker-errors.ts';
import type { GroupInfo, GroupLimits, GroupTaking, TaskSet } from '../broker.ts';
import { recordOf } from './inspection.ts';
import type { HeldSet, QueueList, QueueState } from './queue-state.ts';
import { NO_TIMER, type TaskList, type TaskRow } from './task-lists.ts';
import type { TaskStore } from './task-store.ts';

const EMPTY: GroupTaking = Object.freeze({ set: undefined, againInMs: undefined });

/** Aggregation: the tasks of a group are taken out of it as a set, and one task replaces the set. */
export const GROUPS = {
  groups(store, name) {
    const infos: GroupInfo[] = [];
    for (const { group, size } of store.queues.get(name)?.groups.values() ?? []) infos.push({ group, size });
    return infos;
  },

  takeGroup(store, name, group, limits, holdMs) {
    const queue = store.queues.get(name);
    const list = queue?.groups.get(group);
    if (queue === undefined || list === undefined) return EMPTY;
    const nowMs = store.clock.now();
    if (dueInMs(list, limits, nowMs) > 0) return { set: undefined, againInMs: dueInMs(list, limits, nowMs) };
    const set = hold(store, list, limits.maxSize === 0 ? list.size : limits.maxSize, holdMs);
    return { set, againInMs: list.size === 0 ? undefined : dueInMs(list, limits, nowMs) };
  },

  replaceSet(store, set, task) {
    const { queue: name, group, id } = set;
    const queue = store.queues.get(name);
    const held = queue?.sets.get(id);
    if (queue === undefined || held === undefined) throw setLost(name, group);
    store.check(task, { has: (row) => row.list === held.list });
    drop(store, queue, held);
    for (let row = held.list.head; row !== undefined; row = held.list.head) store.remove(row);
    return recordOf(store, store.add(task));
  },

  reclaimSets(store, names) {
    const nowMs = store.clock.now();
    let count = 0;
    for (const name of new Set(names)) {
      const queue = store.queues.get(name);
      if (queue === undefined) continue;
      for (const held of [...queue.sets.values()]) {
        if (held.endsAtMs <= nowMs) count += reclaim(store, held);
      }
    }
    return count;
  },
} satisfies Partial<Operations<TaskStore>>;

/** Returns how long until a group with tasks is aggregated; 0 or less if that is now. */
function dueInMs(list: TaskList, { graceMs, maxDelayMs, maxSize }: GroupLimits, nowMs: number): number {
  const { head, tail } = list;
  if (head === undefined || tail === undefined || (maxSize > 0 && list.size >= maxSize)) return 0;
  const quietInMs = tail.atMs + graceMs - nowMs;
  const inMs = maxDelayMs === 0 ? quietInMs : Math.min(quietInMs, head.atMs + maxDelayMs - nowMs);
  return Math.max(inMs, 0);
}

function hold(store: TaskStore, list: QueueList, count: number, holdMs: number): TaskSet {
  const { queue, group } = list;
  const held: HeldSet = {
    id: randomUUID(),
    list: queue.groupList(group, true),
    endsAtMs: store.clock.now() + holdMs,
    timer: NO_TIMER,
  };
  const messages = [];
  for (let row = list.head; row !== undefined && messages.length < count; row = list.head) {
    queue.take(row);
    held.list.push(row);
    messages.push(row.message);
  }
  queue.sets.set(held.id, held);
  held.timer = store.timer.schedule(holdMs, reclaimWhenOver, { store, held });
  return { id: held.id, queue: queue.name, group, messages };
}

function reclaimWhenOver({ store, held }: { store: TaskStore; held: HeldSet }): void {
  reclaim(store, held);
}

/** Returns the tasks to their group, in front of those that were added later. @returns how many. */
function reclaim(store: TaskStore, held: HeldSet): number {
  const { queue, group, size } = held.list;
  drop(store, queue, held);
  if (size === 0) return 0;
  const list = queue.group(group);
  let previous: TaskRow | undefined;
  let next = list.head;
  for (let row = held.list.head; row !== undefined; row = held.list.head) {
    while (next !== undefined && next.serial < row.serial) {
      previous = next;
      next = next.next;
    }
    held.list.remove(row);
    list.insertAfter(previous, row);
    previous = row;
  }
  store.notifications.grouped(queue, group);
  return size;
}

function drop(store: TaskStore, queue: QueueState, held: HeldSet): void {
  store.timer.cancel(held.timer);
  queue.sets.delete(held.id);
}
