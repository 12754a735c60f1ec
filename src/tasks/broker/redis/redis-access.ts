import type { Cluster, Redis } from 'ioredis';
import { systemClock, type ClockTimeout } from '../../../core/clock.ts';
import { inOwnTurn } from '../../../core/own-turn.ts';
import { RingQueue } from '../../../core/ring-queue.ts';
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

/** How long it is known whether a queue has keys or limits, in milliseconds, for scripts that end runs: a wrong one notifies late. */
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
  readonly bytes: number;
  readonly resolve: (result: R) => void;
  readonly reject: (reason: unknown) => void;
}

/** Each item counts as so many bytes at least: then a limit of bytes limits the number of items, too. */
const LEAST_BYTES = Math.floor(MOST_BYTES / MOST_CHANGED);

/** Bytes of a full batch. */
const FULL_BYTES = LEAST_BYTES * MOST_CHANGED;

/**
 * Bytes in progress. Redis answers in order, and each answer has a time limit: behind a million items no operation of the process would
 * have its answer in time.
 */
const MAX_RUNNING_BYTES = 10 * FULL_BYTES;

/**
 * Collects the items that many callers submit in one turn of the event loop: they share a round trip and a script. A single item
 * waits only for the end of the turn.
 *
 * At the limit, items wait, and those that are submitted in the meantime join them. If the broker is unavailable then, the items of that
 * key that wait fail with the batch before them, so that no item waits for one time limit after the other.
 */
export class Coalescer<T, R> {
  readonly #process: (key: string, items: readonly T[]) => Promise<readonly R[]>;
  readonly #bytesOf: (item: T) => number;
  /** Items that wait, by key. */
  readonly #waiting = new Map<string, RingQueue<Submitted<T, R>>>();
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
      const bytes = Math.max(this.#bytesOf(item), LEAST_BYTES);
      const items = this.#waiting.get(key) ?? new RingQueue();
      this.#waiting.set(key, items);
      items.push({ item, bytes, resolve, reject });
      if (this.#isArmed) return;
      this.#isArmed = true;
      inOwnTurn(this.#startBatches);
    });
  }

  get #isAtLimit(): boolean {
    return this.#runningBytes + FULL_BYTES > MAX_RUNNING_BYTES;
  }

  readonly #startBatches = (): void => {
    this.#isArmed = false;
    for (const [key, items] of this.#waiting) {
      if (this.#isAtLimit) break;
      const batch = takeBatch(items);
      this.#waiting.delete(key);
      if (items.size > 0) this.#waiting.set(key, items); // its next batch comes after those of the other keys
      void this.#run(key, batch);
    }
  };

  async #run(key: string, batch: readonly Submitted<T, R>[]): Promise<void> {
    const bytes = batch.reduce((sum, item) => sum + item.bytes, 0);
    this.#runningBytes += bytes;
    try {
      const items = batch.map(({ item }) => item);
      const results = await this.#process(key, items);
      for (const [at, { resolve }] of batch.entries()) resolve(results[at] as R);
    } catch (error) {
      for (const { reject } of batch) reject(error);
      if (this.#isAtLimit && isUnavailable(error)) this.#failWaiting(key, error);
    }
    this.#runningBytes -= bytes;
    if (!this.#isArmed) this.#startBatches();
  }

  #failWaiting(key: string, error: unknown): void {
    for (const { reject } of this.#waiting.get(key) ?? []) reject(error);
    this.#waiting.delete(key);
  }
}

/** Takes items for one batch: as many as it may have, and at least one. */
function takeBatch<T, R>(items: RingQueue<Submitted<T, R>>): Submitted<T, R>[] {
  const batch: Submitted<T, R>[] = [];
  let bytes = 0;
  for (let next = items.first; next !== undefined; next = items.first) {
    bytes += next.bytes;
    if (batch.length > 0 && bytes > FULL_BYTES) break;
    batch.push(next);
    items.shift();
  }
  return batch;
}
