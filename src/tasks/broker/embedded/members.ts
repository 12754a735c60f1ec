import { reportUncaught } from '../../../core/report-uncaught.ts';
import type { EnqueueEvent, ScheduleEntry, ServerState } from '../broker.ts';
import type { Operations } from '../broker-base.ts';
import { requirePage } from '../broker-checks.ts';
import { HISTORY_KEPT_MS } from '../broker-settings.ts';
import type { TaskStore } from './task-store.ts';

/** asynq's. */
const EVENTS_KEPT = 1_000;

/** Schedule entries whose events are kept; one more replaces the entry that has been quiet for longest. */
const ENTRIES_KEPT = 1_000;

/** Servers and schedulers of a broker: functions that read their state, so that the state is always current. */
export class Members {
  readonly servers = new Map<string, () => ServerState>();
  readonly schedulers = new Map<string, () => readonly ScheduleEntry[]>();
  /** The events of each schedule entry, in order of the latest event. */
  readonly events = new Map<string, EnqueueEvent[]>();
}

/** Operations on servers and schedulers. */
export const MEMBERS = {
  announceServer: ({ members }, read) => void members.servers.set(read().id, read),
  withdrawServer: ({ members }, id) => void members.servers.delete(id),
  servers: ({ members }) => [...members.servers.values()].flatMap((read) => tryRead(() => [read()])),

  announceScheduler: ({ members }, id, read) => void members.schedulers.set(id, read),
  withdrawScheduler: ({ members }, id) => void members.schedulers.delete(id),
  scheduleEntries: ({ members }) => [...members.schedulers.values()].flatMap((read) => tryRead(read)),

  recordEnqueueEvent({ members: { events } }, entryId, event) {
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

  enqueueEvents({ members }, entryId, page) {
    requirePage(page);
    const events = members.events.get(entryId) ?? [];
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
