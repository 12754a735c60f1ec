import type { Clock } from '../../core/clock.ts';
import { EscapementError } from '../../core/errors.ts';
import { brokerClosed } from './broker-errors.ts';
import {
  BROKER_OPERATION_NAMES,
  BROKER_OPERATIONS,
  type BrokerOperation,
  type OperationRow,
} from './broker-operations.ts';
import type { Broker } from './broker.ts';

/** How a broker carries out an operation. The result may be returned without a promise. */
type Operation<Context, O extends BrokerOperation> = (
  context: Context,
  ...args: Parameters<Broker[O]>
) => ReturnType<Broker[O]> | Awaited<ReturnType<Broker[O]>>;

export type Operations<Context> = { readonly [O in BrokerOperation]: Operation<Context, O> };

/** An operation without its types: those of its arguments and its result do not matter to what wraps all of them. */
export type AnyOperation = (...args: unknown[]) => unknown;

// eslint-disable-next-line @typescript-eslint/no-unsafe-declaration-merging, @typescript-eslint/no-empty-object-type -- the static block defines every operation
export interface BrokerBase extends Broker {}

/**
 * A broker that rejects every operation with `ERR_BROKER_CLOSED` once it is closed, checks its arguments, and names it in its errors. A
 * subclass passes its operations to the constructor, with the context that they work on, and closes the context in `close`. The
 * context is not in the type of the class: it would be in the declarations of the package.
 */
export abstract class BrokerBase {
  /** Where the time of everything that uses this broker comes from. */
  readonly clock: Clock;
  readonly #name: string;
  /** In the order of {@link BROKER_OPERATION_NAMES}. */
  readonly #operations: readonly unknown[];
  /** Undefined once the broker is closed, so that a reference to it keeps nothing in memory. */
  #context: object | undefined;

  /** @param name - what errors call the class: that of the constructor does not survive a minifier. */
  constructor(name: string, clock: Clock, operations: Operations<never>, context: object) {
    this.#name = name;
    this.clock = clock;
    this.#operations = BROKER_OPERATION_NAMES.map((operation) => operations[operation]);
    this.#context = context;
  }

  static {
    for (const [nth, operation] of BROKER_OPERATION_NAMES.entries()) {
      const row: OperationRow<never> = BROKER_OPERATIONS[operation];
      const check = row.check as AnyOperation | undefined;
      // Four named parameters, which is the most that an operation has: a rest parameter would allocate an array per call. Not async:
      // an operation of the embedded broker is done when it returns, and needs one promise.
      const method = function (
        this: BrokerBase,
        a: unknown,
        b: unknown,
        c: unknown,
        d: unknown,
      ): Promise<unknown> {
        try {
          const context = this.#openContext();
          check?.(a, b, c, d);
          const run = this.#operations[nth] as AnyOperation;
          const result = run(context, a, b, c, d);
          if (result instanceof Promise) return this.#settled(result, operation);
          return Promise.resolve(this.#named(result, operation));
        } catch (error) {
          // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- what an async method would do
          return Promise.reject(this.#withOperation(error, operation));
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

  /** Whether the broker was closed. */
  protected get isClosed(): boolean {
    return this.#context === undefined;
  }

  /** Rejects operations from now on. @returns whether the broker was open. */
  protected closeOperations(): boolean {
    const wasOpen = !this.isClosed;
    this.#context = undefined;
    return wasOpen;
  }

  /** Runs a method that other brokers do not have, under the rules of operations. */
  protected async perform<T>(method: string, run: () => Promise<T>): Promise<T> {
    try {
      this.#openContext();
      return await run();
    } catch (error) {
      throw this.#withOperation(error, method);
    }
  }

  /** @throws EscapementError `ERR_BROKER_CLOSED` */
  #openContext(): object {
    if (this.#context === undefined) throw brokerClosed();
    return this.#context;
  }

  /** Not async: most operations of a durable broker come here, and one reaction costs less than a function that is suspended. */
  #settled(pending: Promise<unknown>, operation: BrokerOperation): Promise<unknown> {
    const named =
      operation === 'enqueueMany' ? (result: unknown) => this.#named(result, operation) : undefined;
    return pending.then(named, (error: unknown) => {
      throw this.#withOperation(error, operation);
    });
  }

  /** Names the operation in the errors of rejected entries, too. */
  #named(result: unknown, operation: BrokerOperation): unknown {
    if (operation !== 'enqueueMany') return result;
    for (const outcome of result as PromiseSettledResult<unknown>[]) {
      if (outcome.status === 'rejected') outcome.reason = this.#withOperation(outcome.reason, operation);
    }
    return result;
  }

  /** Returns the error with the name of the operation. Operations that share a request to the broker share its error: each has a copy. */
  #withOperation(error: unknown, operation: string): unknown {
    if (!(error instanceof EscapementError)) return error;
    const op = `${this.#name}.${operation}`;
    if (error.op === undefined) return Object.assign(error, { op });
    if (error.op === op || !error.op.startsWith(`${this.#name}.`)) return error;
    return new EscapementError(error.code, error.message, { op, cause: error.cause });
  }
}
