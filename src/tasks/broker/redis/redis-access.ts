import type { Cluster, Redis } from 'ioredis';
import { systemClock, type ClockTimeout } from '../../../core/clock.ts';
import { inOwnTurn } from '../../../core/own-turn.ts';
import { KeyedSerial } from '../../../core/serial.ts';
import { HOUR_MS } from '../../../core/units.ts';
import type { Operations } from '../broker-base.ts';
import { isUnavailable } from '../broker-errors.ts';
import type { ResolvedBrokerSettings } from '../broker-settings.ts';
import type { BrokerListener } from '../broker.ts';
import type { RedisConnection } from './connection.ts';
import { QueueKeys, QUEUES_KEY } from './keys.ts';
import { MOST_BYTES, MOST_CHANGED, type Script, type ScriptArgument, type ScriptReply } from './script.ts';

/** Some of the operations of a Redis broker. They are in one file per topic, beside the scripts that they run. */
export type RedisOperations = Partial<Operations<RedisAccess>>;

/** Queues that are remembered: more than a server serves. A program with a queue per user reads and builds again what it forgets. */
const MAX_KNOWN_QUEUES = 1_000;

/** How long a queue counts as registered in a cluster, in milliseconds. */
const REGISTERED_MS = 5_000;

/**
 * How long it is known whether a queue has keys or limits, in milliseconds, for scripts that end runs or move tasks: those of the other
 * kind do no harm, but servers may be notified late.
 */
const FLOW_ROUGHLY_KNOWN_MS = 5_000;

/** Longest wait for a token, in milliseconds: servers poll anyway. */
const MAX_WAIT_MS = HOUR_MS;

/** A script that calls of one turn of the event loop share. */
export interface SharedScript<T, R> {
  /** Runs the script for items of one queue. @returns their results in their order. */
  readonly run: (redis: RedisAccess, queue: string, items: readonly T[]) => Promise<readonly R[]>;
  /** Returns the size of an item. */
  readonly bytesOf: (item: T) => number;
}

/** What is remembered of a queue. Other brokers set limits and remove queues, too, so what Redis has is read again when it is old. */
interface KnownQueue {
  readonly keys: QueueKeys;
  /** Whether it has keys or limits. */
  isInFlow: boolean;
  flowReadAtMs: number;
  /** Until when it counts as registered. */
  registeredUntilMs: number;
}

/** What the operations of a Redis broker work on: a connection, the time, what is known of queues, and calls that share a script. */
export class RedisAccess {
  readonly connection: RedisConnection;
  readonly settings: ResolvedBrokerSettings;
  readonly listeners = new Set<BrokerListener>();
  /** Replacements of the task that holds a unique lock, by the lock. */
  readonly replacements = new KeyedSerial();
  readonly #coalescers = new Map<object, Coalescer<unknown, unknown>>();
  readonly #queues = new Map<string, KnownQueue>();
  readonly #tokenTimers = new Map<string, ClockTimeout>();

  constructor(connection: RedisConnection, settings: ResolvedBrokerSettings) {
    this.connection = connection;
    this.settings = settings;
  }

  /** Whether keys without a common hash tag may be on different nodes. */
  get isCluster(): boolean {
    return this.connection.isCluster;
  }

  get wallNowMs(): number {
    return this.settings.clock.wallNow();
  }

  /** Whole milliseconds, for scripts that convert them to seconds and nanoseconds. */
  get wallNowDigits(): string {
    return String(Math.floor(this.wallNowMs));
  }

  /** As `wallNowDigits` if the broker has its own clock (in tests); else empty: then the script reads the clock of Redis. */
  get virtualNowDigits(): string {
    return this.settings.clock === systemClock ? '' : this.wallNowDigits;
  }

  /** @throws TypeError - the name is not a valid queue name. */
  keysOf(queue: string): QueueKeys {
    return this.#known(queue).keys;
  }

  #known(queue: string): KnownQueue {
    let known = this.#queues.get(queue);
    if (known === undefined) {
      known = { keys: new QueueKeys(queue), isInFlow: false, flowReadAtMs: -Infinity, registeredUntilMs: 0 };
      if (this.#queues.size === MAX_KNOWN_QUEUES) this.#queues.clear();
      this.#queues.set(queue, known);
    }
    return known;
  }

  /** Whether a queue had keys or limits when that was last read, or set. */
  wasInFlow(queue: string): boolean {
    return this.#known(queue).isInFlow;
  }

  /** Whether it has: what is known, or a promise if it was read, or set, more than `maxAgeMs` ago. */
  isInFlow(queue: string, maxAgeMs: number): boolean | Promise<boolean> {
    const { isInFlow, flowReadAtMs } = this.#known(queue);
    return this.settings.clock.now() - flowReadAtMs < maxAgeMs ? isInFlow : this.readFlow(queue);
  }

  async readFlow(queue: string): Promise<boolean> {
    const { limits, waiting } = this.keysOf(queue);
    const isInFlow = (await this.send((client) => client.exists(limits, waiting))) > 0;
    this.setFlow(queue, isInFlow);
    return isInFlow;
  }

  setFlow(queue: string, isInFlow: boolean): void {
    const known = this.#known(queue);
    known.isInFlow = isInFlow;
    known.flowReadAtMs = this.settings.clock.now();
  }

  /** Calls back when the next token of a queue comes. Replaces the call before. @param inMs - -1 for never. */
  awaitToken(queue: string, inMs: number, callback: () => void): void {
    this.#tokenTimers.get(queue)?.cancel();
    this.#tokenTimers.delete(queue);
    if (inMs < 0) return;
    const onToken = (): void => {
      this.#tokenTimers.delete(queue);
      callback();
    };
    const timer = this.settings.clock.setTimeout(onToken, Math.min(inMs, MAX_WAIT_MS));
    timer.unref();
    this.#tokenTimers.set(queue, timer);
  }

  /** Forgets a queue that was removed: the next task registers it again. */
  forget(queue: string): void {
    this.awaitToken(queue, -1, () => undefined);
    this.#queues.delete(queue);
  }

  /** Calls back no more. */
  close(): void {
    for (const timer of this.#tokenTimers.values()) timer.cancel();
    this.#tokenTimers.clear();
  }

  /** Runs a script whose only key is the prefix of the queue's keys, or its variant for queues with keys or limits. Throws as `run`. */
  runIn(queue: string, script: Script, args: readonly ScriptArgument[]): Promise<ScriptReply> {
    const keys = [this.keysOf(queue).prefix];
    const { inFlow } = script;
    if (inFlow === undefined) return this.run(script, keys, args);
    const isOn = this.isInFlow(queue, FLOW_ROUGHLY_KNOWN_MS);
    if (typeof isOn === 'boolean') return this.run(isOn ? inFlow : script, keys, args);
    return isOn.then((isIt) => this.run(isIt ? inFlow : script, keys, args));
  }

  /** As `runIn`, for a script that also needs the SET of all queues. In a cluster that is on another node, and left out. */
  runWithQueues(queue: string, script: Script, args: readonly ScriptArgument[]): Promise<ScriptReply> {
    const { prefix } = this.keysOf(queue);
    return this.run(script, this.isCluster ? [prefix] : [prefix, QUEUES_KEY], args);
  }

  /**
   * As `runWithQueues`, for a script that registers the queue. In a cluster that happens first, and the queue counts as registered for a
   * while, not for ever: another process may remove it, and a task that is added then would be in a queue that no inspector lists.
   */
  async runToEnqueue(queue: string, script: Script, args: readonly ScriptArgument[]): Promise<ScriptReply> {
    if (this.isCluster) {
      const known = this.#known(queue);
      const nowMs = this.settings.clock.now();
      if (known.registeredUntilMs <= nowMs) {
        await this.send((client) => client.sadd(QUEUES_KEY, queue));
        known.registeredUntilMs = nowMs + REGISTERED_MS;
      }
    }
    return this.runWithQueues(queue, script, args);
  }

  /** @throws EscapementError `ERR_BROKER_UNAVAILABLE` - Redis cannot be reached, or has not answered in time. */
  run(script: Script, keys: readonly string[], args: readonly ScriptArgument[]): Promise<ScriptReply> {
    const all = script.readsClock ? [...args, this.virtualNowDigits] : args;
    return this.send((client) => script.run(client, keys, all));
  }

  /** Runs a script for an item, together with the other items of this turn. Throws as `run`. */
  runShared<T, R>(script: SharedScript<T, R>, queue: string, item: T): Promise<R> {
    let coalescer = this.#coalescers.get(script) as Coalescer<T, R> | undefined;
    if (coalescer === undefined) {
      coalescer = new Coalescer((key, items) => script.run(this, key, items), script.bytesOf);
      this.#coalescers.set(script, coalescer as Coalescer<unknown, unknown>);
    }
    return coalescer.submit(queue, item);
  }

  /** As `run`, for a command, or for several that do not depend on one another. */
  send<T>(commands: (client: Redis | Cluster) => Promise<T>): Promise<T> {
    return this.connection.run(commands);
  }
}

interface Submitted<T, R> {
  readonly item: T;
  readonly resolve: (result: R) => void;
  readonly reject: (reason: unknown) => void;
}

interface Batch<T, R> {
  readonly key: string;
  readonly items: readonly Submitted<T, R>[];
  readonly bytes: number;
}

/**
 * Limits of the items in progress. Redis answers in order, and each answer has a time limit: behind a million items no operation of
 * the process would have its answer in time.
 */
const MAX_RUNNING_ITEMS = 10 * MOST_CHANGED;
const MAX_RUNNING_BYTES = 10 * MOST_BYTES;

/**
 * Collects the items that many callers submit in one turn of the event loop: they share a round trip and a script. A single item
 * waits only for the end of the turn.
 *
 * Beyond the limits, batches wait, and items that are submitted in the meantime are collected. If the broker is unavailable, the
 * batches of that key that wait fail with the one before them, so that no item waits for one time limit after the other.
 */
export class Coalescer<T, R> {
  readonly #process: (key: string, items: readonly T[]) => Promise<readonly R[]>;
  readonly #bytesOf: (item: T) => number;
  readonly #submitted = new Map<string, Submitted<T, R>[]>();
  /** The last one is next. */
  #waiting: Batch<T, R>[] = [];
  #runningItems = 0;
  #runningBytes = 0;
  #isArmed = false;

  /** @param process - processes items of one key, and returns their results in their order. */
  constructor(
    process: (key: string, items: readonly T[]) => Promise<readonly R[]>,
    bytesOf: (item: T) => number,
  ) {
    this.#process = process;
    this.#bytesOf = bytesOf;
  }

  /** @returns the result of the item. Rejects with the error of its batch. */
  submit(key: string, item: T): Promise<R> {
    return new Promise((resolve, reject) => {
      const items = this.#submitted.get(key);
      if (items === undefined) this.#submitted.set(key, [{ item, resolve, reject }]);
      else items.push({ item, resolve, reject });
      if (this.#isArmed) return;
      this.#isArmed = true;
      inOwnTurn(this.#flush);
    });
  }

  readonly #flush = (): void => {
    this.#isArmed = false;
    if (this.#waiting.length > 0) return;
    const all = [...this.#submitted];
    this.#submitted.clear();
    this.#waiting = all.flatMap(([key, items]) => [...this.#batches(key, items)]).reverse();
    this.#runNext();
  };

  *#batches(key: string, all: Submitted<T, R>[]): Generator<Batch<T, R>> {
    let first = 0;
    let bytes = 0;
    for (const [at, { item }] of all.entries()) {
      const more = this.#bytesOf(item);
      if (at > first && (at - first >= MOST_CHANGED || bytes + more > MOST_BYTES)) {
        yield { key, items: all.slice(first, at), bytes };
        first = at;
        bytes = 0;
      }
      bytes += more;
    }
    yield { key, items: first === 0 ? all : all.slice(first), bytes };
  }

  #runNext(): void {
    for (;;) {
      const next = this.#waiting.at(-1);
      if (next === undefined || !this.#fits(next)) break;
      this.#waiting.pop();
      void this.#run(next);
    }
    if (this.#waiting.length === 0 && this.#submitted.size > 0 && !this.#isArmed) this.#flush();
  }

  #fits({ items, bytes }: Batch<T, R>): boolean {
    if (this.#runningItems === 0) return true;
    return (
      this.#runningItems + items.length <= MAX_RUNNING_ITEMS &&
      this.#runningBytes + bytes <= MAX_RUNNING_BYTES
    );
  }

  async #run({ key, items, bytes }: Batch<T, R>): Promise<void> {
    this.#runningItems += items.length;
    this.#runningBytes += bytes;
    try {
      const results = await this.#process(
        key,
        items.map(({ item }) => item),
      );
      for (const [at, { resolve }] of items.entries()) resolve(results[at] as R);
    } catch (error) {
      rejectAll(items, error);
      if (isUnavailable(error)) this.#failWaiting(key, error);
    }
    this.#runningItems -= items.length;
    this.#runningBytes -= bytes;
    this.#runNext();
  }

  #failWaiting(key: string, error: unknown): void {
    const isOfKey = (batch: Batch<T, R>): boolean => batch.key === key;
    const failed = this.#waiting.filter(isOfKey);
    if (failed.length === 0) return;
    this.#waiting = this.#waiting.filter((batch) => !isOfKey(batch));
    for (const { items } of failed) rejectAll(items, error);
    rejectAll(this.#submitted.get(key) ?? [], error);
    this.#submitted.delete(key);
  }
}

function rejectAll<T, R>(items: readonly Submitted<T, R>[], error: unknown): void {
  for (const { reject } of items) reject(error);
}
