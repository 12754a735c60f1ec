/** Jobs, their keys, and what a queue must have to take part. */
import { expectCount } from '../lib/part.ts';

/** What the workers call for each job. It does as little as possible. */
export interface Work {
  work(key: string): void;
}

/** Each queue has a loop of its own, so that it runs at its own full speed (see `instanceFor`). */
export interface JobQueue {
  /** Adds a job for each key, one after the other, in one turn. */
  addAll(keys: readonly string[]): void;
  add(key: string): void;
  /** Stops the workers. */
  close(): void;
}

export interface PausableQueue extends JobQueue {
  pause(): void;
  start(): void;
  waiting(): number;
}

/** A queue whose caller can wait for each job. */
export interface AwaitedQueue {
  /** Adds a job for each key when the one before is done. */
  doEach(keys: readonly string[]): Promise<void>;
  close(): void;
}

/** Makes a queue and starts its workers. */
export type OpenQueue<Queue = JobQueue> = (jobs: Work, concurrency: number) => Queue;

/** Jobs that come in bursts. */
export class Jobs implements Work {
  worked = 0;
  #characters = 0;
  #expected = 0;
  #expectedCharacters = 0;
  #finish: () => void = () => undefined;

  work(key: string): void {
    this.worked++;
    this.#characters += key.length;
    if (this.worked === this.#expected) this.#finish();
  }

  /** Call it before the jobs are added. @returns a promise that resolves when all of them are done. */
  expect(keys: readonly string[]): Promise<void> {
    this.#expected += keys.length;
    for (const key of keys) this.#expectedCharacters += key.length;
    return new Promise((resolve) => {
      this.#finish = resolve;
    });
  }

  check(): string | undefined {
    const wrong = expectCount(this.worked, this.#expected, 'jobs done');
    if (wrong !== undefined || this.#characters === this.#expectedCharacters) return wrong;
    return 'jobs were done for keys that were not added';
  }
}

/** Number of keys that a controller of a large cluster sees again and again. */
export const DISTINCT = 10_000;

let made: readonly string[] = [];

/** Returns the first `count` keys. The strings are the same for every contestant. */
export function keysUpTo(count: number): readonly string[] {
  // A template makes a string of two halves, which its first lookup in a map joins: the first contestant would pay for
  // that. A parser makes strings of one piece.
  if (made.length < count) made = JSON.parse(JSON.stringify(newKeys(count))) as string[];
  return made.slice(0, count);
}

/** Returns keys as new strings, made by a template, like names of pods in a controller. */
export function newKeys(count: number): string[] {
  return Array.from({ length: count }, (_, number) => `default/pod-${number}`);
}

/** Releases the keys: a million is 40 MB. */
export function dropKeys(): void {
  made = [];
}

/** Keys in turn, again and again. */
export class KeysInTurn {
  readonly #keys: readonly string[];
  #place: number;

  constructor(keys: readonly string[], first = 0) {
    this.#keys = keys;
    this.#place = first;
  }

  next(): string {
    const key = this.#keys[this.#place] as string;
    this.#place = this.#place + 1 === this.#keys.length ? 0 : this.#place + 1;
    return key;
  }
}
