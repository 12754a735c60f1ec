import type { TaskRun } from './task-run.ts';

/**
 * The runs of a server: as many places as it has concurrency. A run keeps the number of its place, so coming and going
 * are O(1) and allocate nothing.
 */
export class RunTable {
  readonly #places: (TaskRun | undefined)[] = [];
  readonly #free: number[] = [];
  readonly #capacity: number;
  #size = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get size(): number {
    return this.#size;
  }

  /** Places that are free. */
  get room(): number {
    return this.#capacity - this.#size;
  }

  add(run: TaskRun): void {
    const place = this.#free.pop() ?? this.#places.length;
    run.place = place;
    this.#places[place] = run;
    this.#size++;
  }

  remove(run: TaskRun): void {
    if (this.#places[run.place] !== run) return;
    this.#places[run.place] = undefined;
    this.#free.push(run.place);
    this.#size--;
  }

  /** A copy: runs may come and go while it is looked through. O(concurrency). */
  list(): TaskRun[] {
    return this.#places.filter((run) => run !== undefined);
  }
}
