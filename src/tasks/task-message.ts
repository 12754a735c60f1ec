/**
 * A task as a broker keeps it. Immutable: what changes is written as another message.
 *
 * Times are wall-clock milliseconds since the epoch, and 0 means never, none or not yet. A broker that keeps whole seconds
 * rounds a time up, so that nothing comes early, and a duration up, so that none becomes 0.
 */
export interface TaskMessage {
  /** Unique in its queue. */
  readonly id: string;
  /** Which handler it is for. */
  readonly type: string;
  /** Where it is. */
  readonly queue: string;
  /** Bytes; empty if there is none. */
  readonly payload: Uint8Array;
  /** Passed on to the handler. */
  readonly headers: Readonly<Record<string, string>>;
  /** Failures that are tried again: it runs one time more, at most. */
  readonly maxRetry: number;
  /** Failures until now. */
  readonly retried: number;
  /** Of the last failure; empty if there is none. */
  readonly lastError: string;
  /** When that was. */
  readonly lastFailedAtMs: number;
  /** How long one run may take; 0 for any time. */
  readonly timeoutMs: number;
  /** When the last run must be over. */
  readonly deadlineMs: number;
  /** What keeps others like it out while it holds the lock of that name; empty if nothing does. */
  readonly uniqueKey: string;
  /** How long it is kept when it is done. */
  readonly retentionMs: number;
  /** When it was done. */
  readonly completedAtMs: number;
  /** Empty if it has none. */
  readonly group: string;
}
