import { reportUncaught } from '../../../core/report-uncaught.ts';
import type { Operations } from '../broker-base.ts';
import type { TaskStore } from './task-store.ts';

export const MEMBERS = {
  announceServer: ({ servers }, read) => void servers.set(read().id, read),
  withdrawServer: ({ servers }, id) => void servers.delete(id),
  servers: ({ servers }) => [...servers.values()].flatMap((read) => tryRead(() => [read()])),

  announceScheduler: ({ schedulers }, id, read) => void schedulers.set(id, read),
  withdrawScheduler: ({ schedulers }, id) => void schedulers.delete(id),
  scheduleEntries: ({ schedulers }) => [...schedulers.values()].flatMap((read) => tryRead(read)),

  recordEnqueueEvent(store, entryId, event) {
    store.addEvent(entryId, event);
    store.journal?.event(entryId, event);
  },

  enqueueEvents(store, entryId, page) {
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
