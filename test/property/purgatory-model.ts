import type { CompletionReason } from 'escapement';
import { failWith } from './actions.ts';
import type { Which } from './purgatory-actions.ts';
import type { Behaviour, Side } from './purgatory-side.ts';

interface ModelOperation {
  readonly id: number;
  readonly delayMs: number;
  readonly isWait: boolean;
  home: ModelPurgatory | undefined;
  /** Grows with every watch: the order under a key. */
  serial: number;
  reason: CompletionReason | undefined;
  isChecking: boolean;
  isTriggered: boolean;
  timeout: Timeout | undefined;
  /** How a wait will have ended, if it fails. */
  failure: string | undefined;
  /** How a wait has ended. */
  outcome: string | undefined;
  /** Whoever waits cannot hear of it before `wait` has returned. */
  isHeard: boolean;
}

interface Timeout {
  readonly dueMs: number;
  /** It was due when it was started: what is overdue comes before it. */
  readonly wasDue: boolean;
  readonly serial: number;
}

/** A map of keys to arrays. */
interface ModelPurgatory {
  readonly lists: Map<string, ModelOperation[]>;
  line: string[];
  isChecking: boolean;
  isClosed: boolean;
}

const makePurgatory = (): ModelPurgatory => ({
  lists: new Map(),
  line: [],
  isChecking: false,
  isClosed: false,
});

/** What the contract says, done with copies of arrays and in no time at all. */
export class ModelSide implements Side {
  readonly #behaviour: Behaviour;
  readonly #purgatories = [makePurgatory(), makePurgatory()] as const;
  readonly #operations = new Map<number, ModelOperation>();
  #nowMs = 0;
  #serial = 0;

  constructor(behaviour: Behaviour) {
    this.#behaviour = behaviour;
  }

  create(id: number, delayMs: number, isWait = false): void {
    this.#operations.set(id, {
      ...{ id, delayMs, isWait, serial: 0, isChecking: false, isTriggered: false, isHeard: false },
      ...{ home: undefined, reason: undefined, timeout: undefined, failure: undefined, outcome: undefined },
    });
  }

  watch(id: number, on: Which, keys: readonly string[]): boolean {
    const [operation, home] = [this.#operation(id), this.#purgatories[on]];
    if (home.isClosed) failWith('ERR_PURGATORY_CLOSED');
    if (operation.home !== undefined) failWith('ERR_ALREADY_WATCHED');
    if (operation.reason !== undefined) return true;
    operation.home = home;
    this.#check(operation);
    if (this.stateOf(id)[0]) return true;
    if (this.#purgatories[on].isClosed) {
      operation.home = undefined;
      failWith('ERR_PURGATORY_CLOSED');
    }
    operation.serial = ++this.#serial;
    for (const key of new Set(keys)) home.lists.set(key, [...(home.lists.get(key) ?? []), operation]);
    this.#check(operation);
    if (operation.home === home) this.#startTimeout(operation);
    return this.stateOf(id)[0];
  }

  wait(id: number, on: Which, keys: readonly string[], timeoutMs: number): void {
    this.create(id, timeoutMs, true);
    try {
      this.watch(id, on, keys);
    } catch (error) {
      this.#fail(this.#operation(id), (error as { code: string }).code);
    }
    const operation = this.#operation(id);
    operation.isHeard = true;
    if (operation.outcome !== undefined) this.#behaviour.onSettled(id, operation.outcome);
  }

  check(on: Which, key: string): number {
    const purgatory = this.#purgatories[on];
    if (purgatory.isClosed) return 0;
    if (!purgatory.line.includes(key)) purgatory.line.push(key);
    if (purgatory.isChecking) return 0;
    purgatory.isChecking = true;
    let completed = 0;
    for (let next = purgatory.line.shift(); next !== undefined; next = purgatory.line.shift()) {
      const walk = (purgatory.lists.get(next) ?? []).map(
        (operation) => [operation, operation.serial] as const,
      );
      for (const [operation, serial] of walk) {
        if (operation.home !== purgatory || operation.serial !== serial) continue;
        if (this.#check(operation)) completed++;
      }
    }
    purgatory.isChecking = false;
    return completed;
  }

  cancelForKey(on: Which, key: string): number[] {
    const { lists, isClosed } = this.#purgatories[on];
    if (isClosed) return [];
    return this.#takeOut([...(lists.get(key) ?? [])], 'ERR_OPERATION_CANCELLED');
  }

  force(id: number): boolean {
    const operation = this.#operation(id);
    return this.#complete(operation, operation.isChecking ? 'tried' : 'forced');
  }

  maybe(id: number): boolean {
    return this.#check(this.#operation(id));
  }

  cancel(id: number): boolean {
    const operation = this.#operation(id);
    const isTimed = operation.timeout !== undefined;
    operation.timeout = undefined;
    return isTimed;
  }

  abort(id: number): void {
    const operation = this.#operation(id);
    if (operation.outcome === undefined) this.#fail(operation, 'aborted');
  }

  close(on: Which, pending: 'complete' | 'drop'): number[] {
    const purgatory = this.#purgatories[on];
    if (purgatory.isClosed) return [];
    purgatory.isClosed = true;
    purgatory.line = [];
    const waiting = [...new Set([...purgatory.lists.values()].flat())].sort((a, b) => a.serial - b.serial);
    if (pending === 'drop') return this.#takeOut(waiting, 'ERR_PURGATORY_CLOSED');
    for (const operation of waiting) if (operation.home === purgatory) this.#complete(operation, 'closed');
    return waiting.filter(({ isWait }) => !isWait).map(({ id }) => id);
  }

  pass(ms: number): void {
    const untilMs = this.#nowMs + ms;
    for (let due = this.#due(untilMs)[0]; due !== undefined; due = this.#due(untilMs)[0]) {
      this.#nowMs = Math.max(this.#nowMs, due[1].dueMs);
      // What falls due meanwhile runs in a later turn.
      for (const [operation, timeout] of this.#due(this.#nowMs)) {
        if (operation.timeout === timeout) this.#expire(operation);
      }
    }
    this.#nowMs = untilMs;
  }

  gauges(): number[] {
    const operations = [...this.#operations.values()];
    const each = this.#purgatories.flatMap((purgatory) => [
      [...purgatory.lists.values()].flat().length,
      operations.filter(({ home, timeout }) => home === purgatory && timeout !== undefined).length,
      purgatory.lists.size,
    ]);
    return [...each, operations.filter(({ timeout }) => timeout !== undefined).length];
  }

  stateOf(id: number): readonly [boolean, boolean] {
    const { reason, timeout } = this.#operation(id);
    return [reason !== undefined, timeout !== undefined];
  }

  #operation(id: number): ModelOperation {
    return this.#operations.get(id) as ModelOperation;
  }

  /** A check, and one more if it was triggered meanwhile. */
  #check(operation: ModelOperation): boolean {
    if (operation.reason !== undefined) return false;
    operation.isTriggered = operation.isChecking;
    if (operation.isChecking) return false;
    const { home, id } = operation;
    operation.isChecking = true;
    try {
      do {
        operation.isTriggered = false;
        this.#tryOnce(operation, home);
      } while (this.#operation(id).isTriggered && !this.stateOf(id)[0] && operation.home === home);
    } finally {
      operation.isChecking = false;
    }
    return this.#operation(id).reason === 'tried';
  }

  #tryOnce(operation: ModelOperation, home: ModelPurgatory | undefined): void {
    try {
      const holds = this.#behaviour.onTry(operation.id);
      if (holds && operation.outcome === undefined) this.force(operation.id);
    } catch (error) {
      if (operation.isWait) this.#fail(operation, (error as Error).message);
      else this.#report(home, error, operation);
    }
  }

  #complete(operation: ModelOperation, reason: CompletionReason): boolean {
    if (operation.reason !== undefined) return false;
    operation.reason = reason;
    const { home } = operation;
    this.#letGo(operation);
    try {
      if (operation.isWait) this.#settle(operation, reason);
      else this.#behaviour.onComplete(operation.id, reason);
    } catch (error) {
      this.#report(home, error, operation);
    }
    return true;
  }

  #expire(operation: ModelOperation): void {
    const { home } = operation;
    operation.timeout = undefined;
    this.#complete(operation, 'expired');
    if (operation.isWait) return;
    try {
      this.#behaviour.onExpiration(operation.id);
    } catch (error) {
      this.#report(home, error, operation);
    }
  }

  #takeOut(operations: ModelOperation[], code: string): number[] {
    for (const operation of operations) this.#letGo(operation);
    const waits = operations.filter(({ isWait }) => isWait);
    for (const wait of waits) this.#end(wait, code);
    return operations.filter((operation) => !waits.includes(operation)).map(({ id }) => id);
  }

  #letGo(operation: ModelOperation): void {
    const lists = operation.home?.lists ?? new Map<string, ModelOperation[]>();
    for (const [key, list] of lists) {
      const rest = list.filter((other) => other !== operation);
      if (rest.length === 0) lists.delete(key);
      else lists.set(key, rest);
    }
    operation.home = undefined;
    operation.timeout = undefined;
  }

  #report(home: ModelPurgatory | undefined, error: unknown, { id }: ModelOperation): void {
    if (home === undefined) throw error;
    this.#behaviour.onError(id, error);
  }

  #fail(operation: ModelOperation, failure: string): void {
    operation.failure ??= failure;
    this.#complete(operation, 'forced');
  }

  #settle(operation: ModelOperation, reason: CompletionReason): void {
    if (operation.failure !== undefined) this.#end(operation, operation.failure);
    else if (reason === 'tried') this.#end(operation, 'holds');
    else this.#end(operation, reason === 'expired' ? 'ERR_OPERATION_EXPIRED' : 'ERR_PURGATORY_CLOSED');
  }

  #end(operation: ModelOperation, outcome: string): void {
    if (operation.outcome !== undefined) return;
    operation.outcome = outcome;
    if (operation.isHeard) this.#behaviour.onSettled(operation.id, outcome);
  }

  #startTimeout(operation: ModelOperation): void {
    if (operation.delayMs === Infinity) return;
    const [dueMs, wasDue] = [this.#nowMs + Math.max(operation.delayMs, 0), operation.delayMs <= 0];
    operation.timeout = { dueMs, wasDue, serial: ++this.#serial };
  }

  /** What is due by then, in the order in which it expires. */
  #due(untilMs: number): (readonly [ModelOperation, Timeout])[] {
    const due: (readonly [ModelOperation, Timeout])[] = [];
    for (const operation of this.#operations.values()) {
      const { timeout } = operation;
      if (timeout !== undefined && timeout.dueMs <= untilMs) due.push([operation, timeout]);
    }
    return due.sort(
      ([, a], [, b]) => a.dueMs - b.dueMs || Number(a.wasDue) - Number(b.wasDue) || a.serial - b.serial,
    );
  }
}
