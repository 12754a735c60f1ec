import type { ClockTimeout } from './clock.ts';
import { original } from './host.ts';

type HostHandle = Parameters<typeof globalThis.clearTimeout>[0] &
  Partial<Pick<ClockTimeout, 'ref' | 'unref'>>;

/** Those that are not armed yet, in no order. */
const unarmed: LazyTimeout[] = [];
/** Whether somebody comes for them when the turn ends. */
let isAwaited = false;

/**
 * A timeout of the host that is set when the turn ends, if it has not been cancelled by then.
 *
 * WHY. No timeout can fire before the turn ends, so until then it need not be there. A timer that is filled and
 * emptied again and again in one turn moves its wake-up each time: that is a few nanoseconds here, and 280 if the host
 * sets and clears a timeout of its own. It is not late for it: the host counts from the beginning of the turn.
 */
export class LazyTimeout implements ClockTimeout {
  readonly #callback: () => void;
  readonly #hostDelayMs: number;
  #handle: HostHandle | undefined;
  /** Its place among the unarmed, as long as it is one of them. */
  #place: number;
  #hasRef = true;

  /** @param hostDelayMs - whole milliseconds, no more than the host can count. */
  constructor(callback: () => void, hostDelayMs: number) {
    this.#callback = callback;
    this.#hostDelayMs = hostDelayMs;
    this.#place = unarmed.push(this) - 1;
    if (isAwaited) return;
    isAwaited = true;
    original.queueMicrotask(armAll);
  }

  cancel(): void {
    if (this.#handle !== undefined) original.clearTimeout(this.#handle);
    else if (unarmed[this.#place] === this) this.#leave();
  }

  ref(): void {
    this.#hasRef = true;
    this.#handle?.ref?.();
  }

  unref(): void {
    this.#hasRef = false;
    this.#handle?.unref?.();
  }

  arm(): void {
    this.#handle = original.setTimeout(this.#callback, this.#hostDelayMs);
    if (!this.#hasRef) this.#handle.unref();
  }

  /** The last one takes its place. */
  #leave(): void {
    const last = unarmed.pop();
    if (last === undefined || last === this) return;
    last.#place = this.#place;
    unarmed[this.#place] = last;
  }
}

function armAll(): void {
  isAwaited = false;
  for (const timeout of unarmed.splice(0)) timeout.arm();
}
