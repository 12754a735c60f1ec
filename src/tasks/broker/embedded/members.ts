import { reportUncaught } from '../../../core/report-uncaught.ts';
import { requireIntegerAtLeast } from '../../../core/validate.ts';
import { HISTORY_KEPT_MS } from '../broker-settings.ts';
import type { EnqueueEvent, Page, ScheduleEntry, ServerState } from '../broker.ts';

/** asynq's. */
const EVENTS_KEPT = 1_000;

/** Schedule entries whose events are kept; one more replaces the entry that has been quiet for longest. */
const ENTRIES_KEPT = 1_000;

/** Servers and schedulers of the broker. It keeps functions that read their state, so that the state is always current. */
export class Members {
  readonly #servers = new Map<string, () => ServerState>();
  readonly #schedulers = new Map<string, () => readonly ScheduleEntry[]>();
  readonly #events = new Map<string, EnqueueEvent[]>();

  announceServer(read: () => ServerState): void {
    this.#servers.set(read().id, read);
  }

  withdrawServer(id: string): void {
    this.#servers.delete(id);
  }

  servers(): readonly ServerState[] {
    return [...this.#servers.values()].flatMap((read) => tryRead(() => [read()]));
  }

  announceScheduler(id: string, read: () => readonly ScheduleEntry[]): void {
    this.#schedulers.set(id, read);
  }

  withdrawScheduler(id: string): void {
    this.#schedulers.delete(id);
  }

  scheduleEntries(): readonly ScheduleEntry[] {
    return [...this.#schedulers.values()].flatMap((read) => tryRead(read));
  }

  recordEvent(entryId: string, event: EnqueueEvent): void {
    const events = this.#events.get(entryId) ?? [];
    // Inserted anew, so that the map stays in order of the latest event.
    this.#events.delete(entryId);
    this.#events.set(entryId, events);
    events.push(event);
    if (events.length > EVENTS_KEPT) events.shift();
    for (const [quietest, { length, [length - 1]: last }] of this.#events) {
      const isOld = last !== undefined && last.atMs < event.atMs - HISTORY_KEPT_MS;
      if (!isOld && this.#events.size <= ENTRIES_KEPT) return;
      this.#events.delete(quietest);
    }
  }

  events(entryId: string, { page, size }: Page): readonly EnqueueEvent[] {
    requireIntegerAtLeast('page.page', 1, page);
    requireIntegerAtLeast('page.size', 1, size);
    const events = this.#events.get(entryId) ?? [];
    return events.toReversed().slice((page - 1) * size, page * size);
  }
}

/** Calls a function of a server or scheduler; one that throws must not hide the others. */
function tryRead<T>(read: () => readonly T[]): readonly T[] {
  try {
    return read();
  } catch (error) {
    reportUncaught(error);
    return [];
  }
}
