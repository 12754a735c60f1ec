/** An item is a key and which add of it this was. */
export interface Item {
  readonly key: string;
  readonly version: number;
}

/** Who holds an item, and whether it was added again. */
interface Holder {
  readonly handOut: number;
  again: Item | undefined;
}

interface Wait {
  readonly key: string;
  item: Item;
  dueMs: number;
  /** When it began to wait, and when it got its time. */
  readonly began: number;
  scheduled: number;
}

interface Loop {
  isOver: boolean;
  isAborted: boolean;
  /** It will be over when its promise has been heard. */
  isEnding: boolean;
}

const BASE_MS = 3;
const MOST_MS = 20;

/** The options of the limiter that the model knows. */
export const LIMITER_OPTIONS = { baseDelayMs: BASE_MS, maxDelayMs: MOST_MS };

/** How promises end: every text is what became of one of them. */
export const ENDED = 'ended';
export const ABORTED = 'aborted';

/** What the contract says of a queue, done with arrays, maps and copies, in no time at all. */
export class ModelQueue {
  readonly maxSize: number;
  readonly #hasDelays: boolean;
  ready: Item[] = [];
  readonly held = new Map<string, Holder>();
  /** Promises that wait for an item: `loop`, if it is one of a loop over leases. */
  line: { readonly id: number; readonly loop?: Loop }[] = [];
  adders: { readonly id: number; readonly item: Item }[] = [];
  drains: number[] = [];
  waits: Wait[] = [];
  isShutDown = false;
  readonly failures = new Map<string, number>();
  /** What has become of each promise. */
  readonly outcomes = new Map<number, string>();
  /** The hand-outs that promises got. */
  readonly handOuts = new Map<number, { readonly key: string; readonly handOut: number }>();
  adds = 0;
  #dropped: Item[] = [];
  #nowMs = 0;
  #serial = 0;

  constructor(maxSize: number, hasDelays: boolean) {
    this.maxSize = maxSize;
    this.#hasDelays = hasDelays;
  }

  /** Whether nothing will ever be handed out again. */
  get hasEnded(): boolean {
    const isAgain = [...this.held.values()].some(({ again }) => again !== undefined);
    return this.isShutDown && this.ready.length === 0 && !isAgain;
  }

  /** @returns false if there is no room. */
  add(item: Item): boolean {
    if (this.isShutDown) return true;
    if (this.#needsRoom(item) && this.ready.length >= this.maxSize) return false;
    this.#accept(item);
    if (this.#hasDelays) this.cancelDelayed(item.key);
    return true;
  }

  addWhenRoom(id: number, item: Item, isAborted: boolean): void {
    if (isAborted) this.outcomes.set(id, ABORTED);
    else if (this.isShutDown) this.outcomes.set(id, 'ERR_QUEUE_SHUT_DOWN');
    else if (this.add(item)) this.outcomes.set(id, 'added');
    else this.adders.push({ id, item });
  }

  get(id: number, isAborted: boolean): void {
    if (isAborted) this.outcomes.set(id, ABORTED);
    else this.#takeOrWait({ id });
  }

  next(id: number, loop: Loop): void {
    if (loop.isOver) this.outcomes.set(id, ENDED);
    else if (loop.isAborted) {
      loop.isOver = true;
      this.outcomes.set(id, ABORTED);
    } else this.#takeOrWait({ id, loop });
  }

  return(loop: Loop): void {
    loop.isOver = true;
    for (const { id } of this.line.filter((each) => each.loop === loop)) this.outcomes.set(id, ENDED);
    this.line = this.line.filter((each) => each.loop !== loop);
  }

  abortLoop(loop: Loop): void {
    loop.isAborted = true;
    for (const { id } of this.line.filter((each) => each.loop === loop)) {
      this.outcomes.set(id, ABORTED);
      loop.isEnding = true;
    }
    this.line = this.line.filter((each) => each.loop !== loop);
  }

  /** The signal of a promise fires. */
  abort(id: number): void {
    const isIn = (list: readonly { readonly id: number }[]): boolean => list.some((each) => each.id === id);
    if (isIn(this.line) || isIn(this.adders) || this.drains.includes(id)) this.outcomes.set(id, ABORTED);
    this.line = this.line.filter((each) => each.id !== id);
    this.adders = this.adders.filter((each) => each.id !== id);
    this.drains = this.drains.filter((each) => each !== id);
  }

  /** @returns false if nobody holds it. */
  done(key: string): boolean {
    const holder = this.held.get(key);
    if (holder === undefined) return false;
    this.held.delete(key);
    if (holder.again !== undefined) this.#offer(holder.again);
    this.#settle();
    return true;
  }

  leaseDone(id: number): void {
    const lease = this.handOuts.get(id);
    if (lease !== undefined && this.held.get(lease.key)?.handOut === lease.handOut) this.done(lease.key);
  }

  /** @returns false if there is no room. */
  addAfter(item: Item, delayMs: number): boolean {
    if (this.isShutDown) return true;
    if (delayMs <= 0) return this.add(item);
    const dueMs = this.#nowMs + delayMs;
    const serial = this.#serial++;
    const wait = this.waits.find(({ key }) => key === item.key);
    if (wait === undefined) {
      this.waits.push({ key: item.key, item, dueMs, began: serial, scheduled: serial });
      return true;
    }
    wait.item = item;
    if (dueMs < wait.dueMs) Object.assign(wait, { dueMs, scheduled: serial });
    return true;
  }

  addRateLimited(item: Item): boolean {
    if (this.isShutDown) return true;
    const failures = this.failures.get(item.key) ?? 0;
    this.failures.set(item.key, failures + 1);
    return this.addAfter(item, Math.min(BASE_MS * 2 ** failures, MOST_MS));
  }

  cancelDelayed(key: string): boolean {
    const before = this.waits.length;
    this.waits = this.waits.filter((wait) => wait.key !== key);
    return this.waits.length < before;
  }

  pass(ms: number): void {
    this.#nowMs += ms;
    const due = this.waits
      .filter(({ dueMs }) => dueMs <= this.#nowMs)
      .sort((a, b) => a.dueMs - b.dueMs || a.scheduled - b.scheduled);
    for (const wait of due) {
      this.cancelDelayed(wait.key);
      this.#accept(wait.item);
    }
  }

  /** @returns what was dropped. */
  shutDown(): Item[] {
    this.#stop();
    return this.#dropped.splice(0);
  }

  drain(id: number, isAborted: boolean): void {
    this.#stop();
    if (isAborted) this.outcomes.set(id, ABORTED);
    else this.drains.push(id);
    this.#settle();
  }

  #stop(): void {
    this.isShutDown = true;
    for (const { id } of this.adders) this.outcomes.set(id, 'ERR_QUEUE_SHUT_DOWN');
    this.adders = [];
    const waits = this.waits.toSorted((a, b) =>
      a.dueMs === b.dueMs ? a.began - b.began : a.dueMs - b.dueMs,
    );
    this.#dropped.push(...waits.map(({ item }) => item));
    this.waits = [];
    this.#settle();
  }

  #needsRoom({ key }: Item): boolean {
    return !this.held.has(key) && this.ready.every((item) => item.key !== key);
  }

  #accept(item: Item): void {
    const holder = this.held.get(item.key);
    const place = this.ready.findIndex(({ key }) => key === item.key);
    if (place >= 0) {
      this.ready[place] = item;
      return;
    }
    if (holder?.again === undefined) this.adds++;
    if (holder !== undefined) holder.again = item;
    else this.#offer(item);
  }

  #offer(item: Item): void {
    const first = this.line.shift();
    if (first === undefined) this.ready.push(item);
    else this.#handOut(first.id, item);
  }

  #handOut(id: number, item: Item): void {
    const handOut = this.#serial++;
    this.held.set(item.key, { handOut, again: undefined });
    this.handOuts.set(id, { key: item.key, handOut });
    this.outcomes.set(id, `${item.key}${item.version}`);
  }

  #takeOrWait(taker: { readonly id: number; readonly loop?: Loop }): void {
    this.#admit();
    const item = this.ready.shift();
    if (item !== undefined) this.#handOut(taker.id, item);
    else if (this.hasEnded) this.outcomes.set(taker.id, ENDED);
    else this.line.push(taker);
  }

  /** Room is made by what is about to be taken. */
  #admit(): void {
    while (this.ready.length - 1 < this.maxSize) {
      const adder = this.adders.shift();
      if (adder === undefined) return;
      this.#accept(adder.item);
      if (this.#hasDelays) this.cancelDelayed(adder.item.key);
      this.outcomes.set(adder.id, 'added');
    }
  }

  #settle(): void {
    if (!this.hasEnded) return;
    for (const { id } of this.line.splice(0)) this.outcomes.set(id, ENDED);
    if (this.held.size > 0) return;
    for (const id of this.drains.splice(0)) this.outcomes.set(id, 'drained');
  }
}
