import {
  DelayedOperation,
  DelayedOperationPurgatory,
  ManualClock,
  SystemTimer,
  type CompletionReason,
} from 'escapement';
import { checkPurgatory } from 'escapement/testing';
import type { Which } from './purgatory-actions.ts';

/** What the operations of a side do: the same on both. They are known by number. */
export interface Behaviour {
  /** Whether the condition holds; may throw. */
  onTry(id: number): boolean;
  onComplete(id: number, reason: CompletionReason): void;
  onExpiration(id: number): void;
  onError(id: number, error: unknown): void;
  /** A wait has ended. */
  onSettled(id: number, outcome: string): void;
}

/** Two purgatories on one timer: the real ones, or a model of them. */
export interface Side {
  create(id: number, delayMs: number): void;
  watch(id: number, on: Which, keys: readonly string[]): boolean;
  wait(id: number, on: Which, keys: readonly string[], timeoutMs: number): void;
  check(on: Which, key: string): number;
  cancelForKey(on: Which, key: string): number[];
  force(id: number): boolean;
  maybe(id: number): boolean;
  cancel(id: number): boolean;
  abort(id: number): void;
  close(on: Which, pending: 'complete' | 'drop'): number[];
  pass(ms: number): void;
  /** Watch entries, timeouts and keys of both, and what waits in the timer. */
  gauges(): number[];
  /** Whether an operation is completed, and whether it waits for its timeout. */
  stateOf(id: number): readonly [isCompleted: boolean, isTimed: boolean];
}

class ScriptedOperation extends DelayedOperation {
  readonly id: number;
  readonly #behaviour: Behaviour;

  constructor(id: number, delayMs: number, behaviour: Behaviour) {
    super(delayMs);
    this.id = id;
    this.#behaviour = behaviour;
  }

  override tryComplete(): boolean {
    return this.#behaviour.onTry(this.id) && this.forceComplete();
  }

  override onComplete(reason: CompletionReason): void {
    this.#behaviour.onComplete(this.id, reason);
  }

  override onExpiration(): void {
    this.#behaviour.onExpiration(this.id);
  }
}

/** How a wait that rejected has ended. */
function describeReason(reason: unknown): string {
  const { code, message } = reason as { code?: unknown; message: string };
  return typeof code === 'string' ? code : message;
}

export class RealSide implements Side {
  readonly #behaviour: Behaviour;
  readonly #clock = new ManualClock();
  readonly #timer = new SystemTimer({ clock: this.#clock });
  readonly #purgatories: readonly DelayedOperationPurgatory<string, ScriptedOperation>[];
  readonly #operations = new Map<number, ScriptedOperation>();
  readonly #controllers = new Map<number, AbortController>();

  constructor(behaviour: Behaviour) {
    this.#behaviour = behaviour;
    this.#purgatories = ['one', 'two'].map(
      (name) =>
        new DelayedOperationPurgatory<string, ScriptedOperation>(name, {
          timer: this.#timer,
          onError: (error, { id }) => behaviour.onError(id, error),
        }),
    );
  }

  create(id: number, delayMs: number): void {
    this.#operations.set(id, new ScriptedOperation(id, delayMs, this.#behaviour));
  }

  watch(id: number, on: Which, keys: readonly string[]): boolean {
    return this.#purgatory(on).tryCompleteElseWatch(this.#operation(id), keys);
  }

  wait(id: number, on: Which, keys: readonly string[], timeoutMs: number): void {
    const controller = new AbortController();
    this.#controllers.set(id, controller);
    const condition = (): number | undefined => (this.#behaviour.onTry(id) ? id : undefined);
    const { signal } = controller;
    this.#purgatory(on)
      .wait(keys, condition, { timeoutMs, signal })
      .then(
        (value) => this.#behaviour.onSettled(id, value === id ? 'holds' : 'wrong value'),
        (reason: unknown) => this.#behaviour.onSettled(id, describeReason(reason)),
      );
  }

  check(on: Which, key: string): number {
    return this.#purgatory(on).checkAndComplete(key);
  }

  cancelForKey(on: Which, key: string): number[] {
    return this.#purgatory(on)
      .cancelForKey(key)
      .map(({ id }) => id);
  }

  force(id: number): boolean {
    return this.#operation(id).forceComplete();
  }

  maybe(id: number): boolean {
    return this.#operation(id).maybeTryComplete();
  }

  cancel(id: number): boolean {
    return this.#operation(id).cancel();
  }

  abort(id: number): void {
    this.#controllers.get(id)?.abort(new Error('aborted'));
  }

  close(on: Which, pending: 'complete' | 'drop'): number[] {
    return this.#purgatory(on)
      .close({ pending })
      .map(({ id }) => id);
  }

  pass(ms: number): void {
    this.#clock.advance(ms);
  }

  gauges(): number[] {
    for (const purgatory of this.#purgatories) checkPurgatory(purgatory);
    const each = this.#purgatories.flatMap(({ watched, numDelayed, watchedKeys }) => [
      watched,
      numDelayed,
      watchedKeys,
    ]);
    return [...each, this.#timer.size];
  }

  stateOf(id: number): readonly [boolean, boolean] {
    const { isCompleted, pending } = this.#operation(id);
    return [isCompleted, pending];
  }

  #purgatory(on: Which): DelayedOperationPurgatory<string, ScriptedOperation> {
    return this.#purgatories[on] as DelayedOperationPurgatory<string, ScriptedOperation>;
  }

  #operation(id: number): ScriptedOperation {
    return this.#operations.get(id) as ScriptedOperation;
  }
}
