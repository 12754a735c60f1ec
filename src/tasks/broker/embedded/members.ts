import { reportUncaught } from '../../../core/report-uncaught.ts';
import { requirePage } from '../../argument-checks.ts';
import type { Operations } from '../broker-base.ts';
import { HISTORY_KEPT_MS } from '../broker-settings.ts';
import type { TaskStore } from './task-store.ts';

/** asynq's. */
const EVENTS_KEPT = 1_000;

/** Schedule entries whose events are kept; one more replaces the entry that has been quiet for longest. */
const ENTRIES_KEPT = 1_000;

export const MEMBERS = {
  announceServer: ({ servers }, read) => void servers.set(read().id, read),
  withdrawServer: ({ servers }, id) => void servers.delete(id),
  servers: ({ servers }) => [...servers.values()].flatMap((read) => tryRead(() => [read()])),

  announceScheduler: ({ schedulers }, id, read) => void schedulers.set(id, read),
  withdrawScheduler: ({ schedulers }, id) => void schedulers.delete(id),
  scheduleEntries: ({ schedulers }) => [...schedulers.values()].flatMap((read) => tryRead(read)),

  recordEnqueueEvent({ enqueueEvents: events }, entryId, event) {
    const ofEntry = events.get(entryId) ?? [];
    // Deleted first, so that the map stays in order.
    events.delete(entryId);
    events.set(entryId, ofEntry);
    ofEntry.push(event);
    if (ofEntry.length > EVENTS_KEPT) ofEntry.shift();
    for (const [quietest, { length, [length - 1]: last }] of events) {
      const isOld = last !== undefined && last.atMs < event.atMs - HISTORY_KEPT_MS;
      if (!isOld && events.size <= ENTRIES_KEPT) return;
      events.delete(quietest);
    }
  },

  enqueueEvents(store, entryId, page) {
    requirePage(page);
    const events = store.enqueueEvents.get(entryId) ?? [];
    return events.toReversed().slice((page.page - 1) * page.size, page.page * page.size);
  },
} satisfies Partial<Operations<TaskStore>>;

/** Calls a function of a server or scheduler; one that throws must not hide the others. */
function tryRead<T>(read: () => readonly T[]): readonly T[] {
  try {
    return read();
  } catch (error) {
    reportUncaught(error);
    return [];
  }
}
