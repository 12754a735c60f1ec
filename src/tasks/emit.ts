import type { EventEmitter } from 'node:events';
import { reportUncaught } from '../core/report-uncaught.ts';

/** Emits an event. What a listener throws is reported as an uncaught exception and does not affect the caller. */
export function emit<E extends Record<keyof E, unknown[]>, K extends keyof E & string>(
  emitter: EventEmitter<E>,
  event: K,
  ...args: E[K]
): void {
  const plain = emitter as unknown as EventEmitter;
  if (plain.listenerCount(event) === 0) return;
  try {
    plain.emit(event, ...args);
  } catch (error) {
    reportUncaught(error);
  }
}
