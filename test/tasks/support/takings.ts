import type { Broker } from 'escapement/tasks';
import { withMethods } from './with-methods.ts';

/** Tasks that a dequeue has returned: the broker has decided on them between two times. */
interface Taking {
  readonly fromMs: number;
  readonly toMs: number;
  readonly count: number;
}

/** The tasks that dequeues have returned, of all brokers together. */
export class Takings {
  readonly #all: Taking[] = [];

  /** Notes those of a broker. @returns the broker for the server. */
  of<B extends Broker>(broker: B): B {
    return withMethods(broker, {
      dequeue: async (...args) => {
        const fromMs = broker.clock.wallNow();
        const leased = await broker.dequeue(...args);
        if (leased.length > 0) this.#all.push({ fromMs, toMs: broker.clock.wallNow(), count: leased.length });
        return leased;
      },
    });
  }

  /** Number of dequeues that have returned tasks. */
  get size(): number {
    return this.#all.length;
  }

  get tasks(): number {
    return this.#all.reduce((sum, { count }) => sum + count, 0);
  }

  /** Milliseconds from the first one to the last one. */
  get tookMs(): number {
    return (
      Math.max(...this.#all.map(({ toMs }) => toMs)) - Math.min(...this.#all.map(({ fromMs }) => fromMs))
    );
  }

  /** The most tasks in any window, beyond those for which tokens come in it. */
  mostAtOnce(tokensPerMs: number): number {
    const byEnd = [...this.#all].sort((a, b) => a.toMs - b.toMs);
    let most = 0;
    for (const { fromMs } of this.#all) {
      let count = 0;
      for (const taking of byEnd) {
        if (taking.fromMs < fromMs) continue;
        count += taking.count;
        most = Math.max(most, count - (taking.toMs - fromMs) * tokensPerMs);
      }
    }
    return most;
  }
}
