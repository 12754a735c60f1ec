import { inOwnTurn } from '../core/own-turn.ts';
import type { AppendResult, MessageLog } from './message-log.ts';

/** Most that one commit writes: messages, and bytes. What is more waits for the next one. */
const BATCH_MESSAGES = 10_000;
const BATCH_BYTES = 8 * 1024 * 1024;

/** A put that waits for its commit. */
interface PendingPut {
  readonly data: Uint8Array;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** Something that must not happen while a batch is written, after the puts that came before it. */
interface PendingStep {
  readonly step: () => Promise<void>;
}

/** What the loop tells its queue. */
export interface CommitEvents {
  /** A batch is about to be written. */
  committing(): void;
  /** Messages were committed, and may have become readable. */
  committed(messages: number, bytes: number): void;
  /** A message was not written, and has left nothing behind. @returns what its `put` rejects with. */
  refused(data: Uint8Array, error: unknown): unknown;
}

/**
 * Group commit: one write, and one sync, for all puts that have come since the last one began.
 *
 *      put put put ──► pending ──► write ──► sync ──► all of them resolve
 *                         ▲ puts that come meanwhile are the next batch
 *
 * Nothing waits for company: a put alone is written in the turn after its own. That turn, and the one between two
 * batches, is where those whose puts have just resolved put again, and share the next sync.
 */
export class CommitLoop {
  readonly #log: MessageLog;
  readonly #syncsEach: boolean;
  readonly #events: CommitEvents;
  #pending: (PendingPut | PendingStep)[] = [];
  #isRunning = false;

  constructor(log: MessageLog, syncsEach: boolean, events: CommitEvents) {
    this.#log = log;
    this.#syncsEach = syncsEach;
    this.#events = events;
  }

  /** Resolves when the message is as safe as the queue promises. */
  put(data: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#add({ data, resolve, reject });
    });
  }

  /** Runs a step behind the puts that have come before, and before those that come after. */
  run(step: () => Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#add({ step: () => step().then(resolve, reject) });
    });
  }

  #add(entry: PendingPut | PendingStep): void {
    this.#pending.push(entry);
    if (this.#isRunning) return;
    this.#isRunning = true;
    inOwnTurn(() => void this.#loop());
  }

  async #loop(): Promise<void> {
    while (this.#pending.length > 0) {
      const pending = this.#pending;
      this.#pending = [];
      await this.#process(pending);
      await new Promise<void>(inOwnTurn);
    }
    this.#isRunning = false;
  }

  async #process(pending: readonly (PendingPut | PendingStep)[]): Promise<void> {
    let at = 0;
    while (at < pending.length) {
      const entry = pending[at] as PendingPut | PendingStep;
      if ('step' in entry) {
        await entry.step();
        at++;
      } else {
        const batch = batchFrom(pending, at);
        await this.#commit(batch);
        at += batch.length;
      }
    }
  }

  async #commit(batch: readonly PendingPut[]): Promise<void> {
    let rest = batch;
    while (rest.length > 0) {
      this.#events.committing();
      const { appended, error } = await this.#write(rest.map(({ data }) => data));
      const done = rest.slice(0, appended);
      this.#events.committed(
        appended,
        done.reduce((sum, { data }) => sum + data.length, 0),
      );
      for (const { resolve } of done) resolve();
      rest = rest.slice(appended);
      if (error === undefined) continue;
      for (const { data, reject } of rest) reject(this.#events.refused(data, error));
      return;
    }
  }

  async #write(messages: readonly Uint8Array[]): Promise<AppendResult> {
    let done = 0;
    try {
      while (done < messages.length) {
        const { appended, error } = await this.#log.append(done === 0 ? messages : messages.slice(done));
        if (this.#syncsEach && appended > 0) await this.#log.sync();
        done += appended;
        if (error !== undefined) return { appended: done, error };
      }
      return { appended: done };
    } catch (error) {
      return { appended: done, error };
    }
  }
}

/** The puts from `start` on that are written together. */
function batchFrom(pending: readonly (PendingPut | PendingStep)[], start: number): PendingPut[] {
  const batch: PendingPut[] = [];
  let bytes = 0;
  for (let at = start; at < pending.length && batch.length < BATCH_MESSAGES && bytes < BATCH_BYTES; at++) {
    const entry = pending[at] as PendingPut | PendingStep;
    if ('step' in entry) break;
    batch.push(entry);
    bytes += entry.data.length;
  }
  return batch;
}
