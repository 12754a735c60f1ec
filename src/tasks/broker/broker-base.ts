import type { Clock } from '../../core/clock.ts';
import { EscapementError } from '../../core/errors.ts';
import { isThenable } from '../../core/thenable.ts';
import type { Broker } from './broker.ts';
import { brokerClosed } from './broker-errors.ts';

/** An operation of a broker: a method whose promise settles when it is done. */
export type BrokerOperation = Exclude<keyof Broker, 'clock' | 'maintenance' | 'leaseHolder' | 'close'>;

/** Operations that may return their result without a promise. */
export type OperationResults = {
  readonly [O in BrokerOperation]: (
    ...args: Parameters<Broker[O]>
  ) => ReturnType<Broker[O]> | Awaited<ReturnType<Broker[O]>>;
};

/** Every operation; TypeScript checks that none is missing. */
export const BROKER_OPERATIONS: Readonly<Record<BrokerOperation, true>> = {
  ...{ ping: true, enqueue: true, enqueueMany: true, enqueueTick: true, lastTickMs: true, dequeue: true },
  ...{ complete: true, retry: true, archive: true, release: true, discard: true, extendLeases: true },
  ...{ writeResult: true, writeProgress: true, forward: true, recover: true, deleteExpired: true },
  ...{ groups: true, takeGroup: true, replaceSet: true, reclaimSets: true, subscribe: true, cancel: true },
  ...{ announceServer: true, withdrawServer: true, servers: true, announceScheduler: true },
  ...{ withdrawScheduler: true, scheduleEntries: true, recordEnqueueEvent: true, enqueueEvents: true },
  ...{ queues: true, queueStats: true, history: true, task: true, tasks: true, change: true },
  ...{ updatePayload: true, repair: true, pause: true, resume: true, removeQueue: true },
};

export const BROKER_OPERATION_NAMES = Object.keys(BROKER_OPERATIONS) as readonly BrokerOperation[];

/** An operation without its types: those of its arguments and its result do not matter to what wraps all of them. */
export type AnyOperation = (...args: unknown[]) => unknown;

// eslint-disable-next-line @typescript-eslint/no-unsafe-declaration-merging, @typescript-eslint/no-empty-object-type -- the static block defines every operation
export interface BrokerBase extends Broker {}

/**
 * A broker that rejects every operation with `ERR_BROKER_CLOSED` once it is closed. A subclass passes its operations to the
 * constructor, and closes what they work on in `close`.
 */
// eslint-disable-next-line @typescript-eslint/no-unsafe-declaration-merging -- as above
export abstract class BrokerBase {
  /** Where the time of everything that uses this broker comes from. */
  readonly clock: Clock;
  readonly #name: string;
  /** Undefined once the broker is closed, so that a reference to it keeps nothing in memory. */
  #operations: OperationResults | undefined;

  /** @param name - what errors call the class: that of the constructor does not survive a minifier. */
  constructor(name: string, clock: Clock, operations: OperationResults) {
    this.#name = name;
    this.clock = clock;
    this.#operations = operations;
  }

  static {
    for (const operation of BROKER_OPERATION_NAMES) {
      // Four named parameters, which is the most that an operation has: a rest parameter would allocate an array per call.
      const method = async function (
        this: BrokerBase,
        a: unknown,
        b: unknown,
        c: unknown,
        d: unknown,
      ): Promise<unknown> {
        try {
          const result = (this.#open(operation)[operation] as AnyOperation)(a, b, c, d);
          return isThenable(result) ? await result : result;
        } catch (error) {
          throw this.#withOperation(error, operation);
        }
      };
      Object.defineProperty(method, 'name', { value: operation });
      Object.defineProperty(this.prototype, operation, { value: method, writable: true, configurable: true });
    }
  }

  /** Closes the broker. Idempotent. */
  abstract close(): Promise<void>;

  /** `close()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Rejects operations from now on. @returns whether the broker was open. */
  protected closeOperations(): boolean {
    const wasOpen = this.#operations !== undefined;
    this.#operations = undefined;
    return wasOpen;
  }

  /** Whether the broker was closed. */
  protected get isClosed(): boolean {
    return this.#operations === undefined;
  }

  /** @throws EscapementError `ERR_BROKER_CLOSED` */
  protected requireOpen(operation: string): void {
    if (this.isClosed) throw brokerClosed(this.#nameOf(operation));
  }

  #open(operation: string): OperationResults {
    if (this.#operations === undefined) throw brokerClosed(this.#nameOf(operation));
    return this.#operations;
  }

  /** Every error of an operation names it. */
  #withOperation(error: unknown, operation: string): unknown {
    if (error instanceof EscapementError && error.op === undefined) {
      Object.assign(error, { op: this.#nameOf(operation) });
    }
    return error;
  }

  #nameOf(operation: string): string {
    return `${this.#name}.${operation}`;
  }
}
