import {
  DelayedOperation,
  DelayedOperationPurgatory,
  ManualClock,
  SystemTimer,
  type CompletionReason,
  type PurgatoryOptions,
} from 'escapement';
import { checkPurgatory } from 'escapement/testing';
import { test as base } from 'vitest';

/** What an operation is like; its callbacks run before it answers. */
export interface Setup {
  readonly delayMs?: number;
  readonly holds?: boolean;
  readonly onTry?: (operation: TestOperation) => void;
  readonly onComplete?: (operation: TestOperation, reason: CompletionReason) => void;
  readonly onExpiration?: (operation: TestOperation) => void;
}

/** An operation whose condition is a field, and that writes down what happens to it. */
export class TestOperation extends DelayedOperation {
  readonly name: string;
  holds: boolean;
  tries = 0;
  readonly #setup: Setup;
  readonly #log: string[];

  constructor(name: string, setup: Setup = {}, log: string[] = []) {
    super(setup.delayMs ?? Infinity);
    this.name = name;
    this.holds = setup.holds ?? false;
    this.#setup = setup;
    this.#log = log;
  }

  override tryComplete(): boolean {
    this.tries++;
    this.#setup.onTry?.(this);
    return this.holds && this.forceComplete();
  }

  override onComplete(reason: CompletionReason): void {
    this.#log.push(`${this.name} ${reason}`);
    this.#setup.onComplete?.(this, reason);
  }

  override onExpiration(): void {
    this.#log.push(`${this.name} onExpiration`);
    this.#setup.onExpiration?.(this);
  }
}

/** A purgatory on a timer that it was given, on virtual time, and all that it told anybody. */
export class Fixture {
  readonly clock: ManualClock;
  readonly timer: SystemTimer;
  readonly purgatory: DelayedOperationPurgatory<string>;
  /** Completions and expirations, as they came. */
  readonly log: string[] = [];
  /** What onError was told. */
  readonly errors: (readonly [error: unknown, operation: DelayedOperation])[] = [];

  constructor(options: PurgatoryOptions<string> = {}, clock = new ManualClock()) {
    this.clock = clock;
    this.timer = new SystemTimer({ clock });
    this.purgatory = new DelayedOperationPurgatory('test', {
      timer: this.timer,
      onError: (error, operation) => this.errors.push([error, operation]),
      ...options,
    });
  }

  operation(name: string, setup: Setup = {}): TestOperation {
    return new TestOperation(name, setup, this.log);
  }

  /** Makes an operation and watches it under each character of `keys`. */
  watch(name: string, keys: string, setup: Setup = {}): TestOperation {
    const operation = this.operation(name, setup);
    this.purgatory.tryCompleteElseWatch(operation, Array.from(keys));
    return operation;
  }

  /** Watch entries, timeouts and keys, after a check that they are right; and what waits in the timer. */
  gauges(): [watched: number, numDelayed: number, watchedKeys: number, inTimer: number] {
    checkPurgatory(this.purgatory);
    const { watched, numDelayed, watchedKeys } = this.purgatory;
    return [watched, numDelayed, watchedKeys, this.timer.size];
  }

  /** What was written since the last call. */
  take(): string[] {
    return this.log.splice(0);
  }
}

/** A test whose context has a purgatory. */
export const test = base.extend('fixture', () => new Fixture());
