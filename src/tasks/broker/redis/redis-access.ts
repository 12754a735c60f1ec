import type { Cluster, Redis } from 'ioredis';
import { systemClock } from '../../../core/clock.ts';
import type { BrokerListener } from '../broker.ts';
import type { Operations } from '../broker-base.ts';
import type { ResolvedBrokerSettings } from '../broker-settings.ts';
import { Coalescer } from './coalescer.ts';
import type { RedisConnection } from './connection.ts';
import { QueueKeys, QUEUES_KEY } from './keys.ts';
import type { Script, ScriptArgument, ScriptReply } from './script.ts';

/** Some of the operations of a Redis broker. They are in one file per topic, beside the scripts that they run. */
export type RedisOperations = Partial<Operations<RedisAccess>>;

/** Queues whose keys are kept: more than a server serves. A program with a queue per user builds them again. */
const MAX_KNOWN_QUEUES = 1_000;

/** How long a queue counts as registered in a cluster, in milliseconds, and for how many queues that is remembered. */
const REGISTERED_MS = 5_000;
const MAX_REGISTERED = 1_000;

/** A script that calls of one turn of the event loop share. */
export interface SharedScript<T, R> {
  /** Runs the script for items of one queue. @returns their results in their order. */
  readonly run: (redis: RedisAccess, queue: string, items: readonly T[]) => Promise<readonly R[]>;
  /** Returns the size of an item. */
  readonly bytesOf: (item: T) => number;
}

/** What the operations of a Redis broker work on: a connection, the time, keys, and calls that share a script. */
export class RedisAccess {
  readonly connection: RedisConnection;
  readonly settings: ResolvedBrokerSettings;
  /** Listeners with a subscription. */
  readonly listeners = new Set<BrokerListener>();
  readonly #coalescers = new Map<object, Coalescer<unknown, unknown>>();
  readonly #keys = new Map<string, QueueKeys>();
  readonly #registeredUntilMs = new Map<string, number>();

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
    let keys = this.#keys.get(queue);
    if (keys === undefined) {
      keys = new QueueKeys(queue);
      if (this.#keys.size === MAX_KNOWN_QUEUES) this.#keys.clear();
      this.#keys.set(queue, keys);
    }
    return keys;
  }

  /** KEYS of a script of a queue that also needs the SET of all queues. In a cluster that is on another node, and left out. */
  keysWithQueues(queue: string): string[] {
    const { prefix } = this.keysOf(queue);
    return this.isCluster ? [prefix] : [prefix, QUEUES_KEY];
  }

  /**
   * KEYS of a script that adds tasks to a queue. In a cluster it registers the queue first, and assumes for a while that it still
   * is, not for ever: another process may remove the queue, and a task that is added then would be in a queue that no inspector lists.
   */
  async keysToEnqueue(queue: string): Promise<string[]> {
    if (this.isCluster) {
      const nowMs = this.settings.clock.now();
      if ((this.#registeredUntilMs.get(queue) ?? 0) <= nowMs) {
        await this.send((client) => client.sadd(QUEUES_KEY, queue));
        if (this.#registeredUntilMs.size >= MAX_REGISTERED) this.#registeredUntilMs.clear();
        this.#registeredUntilMs.set(queue, nowMs + REGISTERED_MS);
      }
    }
    return this.keysWithQueues(queue);
  }

  /** The queue was removed: the next task registers it again. */
  unregistered(queue: string): void {
    this.#registeredUntilMs.delete(queue);
  }

  /** Runs a script whose only key is the prefix of the queue's keys. Throws as `run`. */
  runIn(queue: string, script: Script, args: readonly ScriptArgument[]): Promise<ScriptReply> {
    return this.run(script, [this.keysOf(queue).prefix], args);
  }

  /** @throws EscapementError `ERR_BROKER_UNAVAILABLE` - Redis cannot be reached, or has not answered in time. */
  run(script: Script, keys: readonly string[], args: readonly ScriptArgument[]): Promise<ScriptReply> {
    return this.send((client) => script.run(client, keys, args));
  }

  /** Runs a script for an item, together with the other items of this turn. Throws as `run`. */
  runShared<T, R>(script: SharedScript<T, R>, queue: string, item: T): Promise<R> {
    let coalescer = this.#coalescers.get(script) as Coalescer<T, R> | undefined;
    if (coalescer === undefined) {
      const run = (key: string, items: readonly T[]): Promise<readonly R[]> => script.run(this, key, items);
      coalescer = new Coalescer({ run, bytesOf: script.bytesOf });
      this.#coalescers.set(script, coalescer as Coalescer<unknown, unknown>);
    }
    return coalescer.submit(queue, item);
  }

  /** As `run`, for a command, or for several that do not depend on one another. */
  send<T>(commands: (client: Redis | Cluster) => Promise<T>): Promise<T> {
    return this.connection.run(commands);
  }
}
