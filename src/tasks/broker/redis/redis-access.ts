import type { Cluster, Redis } from 'ioredis';
import { systemClock, type Clock } from '../../../core/clock.ts';
import type { ResolvedBrokerSettings } from '../broker-settings.ts';
import type { RedisConnection } from './connection.ts';
import { QueueKeys, QUEUES_KEY } from './keys.ts';
import type { Script, ScriptArgument, ScriptReply } from './script.ts';

/** Queues whose keys are kept: more than a server serves. A program with a queue per user builds them again. */
const MAX_KNOWN_QUEUES = 1_000;

/**
 * What an operation of the broker needs: a client, the time, and keys. There is one access per operation: every error of the
 * connection names the operation.
 *
 * The operations are functions over their access, in one file per topic, beside the scripts that they run. Only a topic that
 * keeps state between calls is a class: `Enqueuing` and `Completing` coalesce calls, `Notifications` keeps listeners.
 */
export class RedisAccess {
  /** The operation, as a user would write it: `RedisBroker.enqueue`. */
  readonly op: string;
  readonly settings: ResolvedBrokerSettings;
  readonly #connection: RedisConnection;
  readonly #shared: Shared;

  constructor(
    connection: RedisConnection,
    settings: ResolvedBrokerSettings,
    op = 'RedisBroker',
    shared: Shared = { keys: new Map(), accesses: new Map() },
  ) {
    this.#connection = connection;
    this.settings = settings;
    this.op = op;
    this.#shared = shared;
  }

  /** The access of an operation, made once. */
  for(operation: string): RedisAccess {
    const { accesses } = this.#shared;
    let access = accesses.get(operation);
    if (access === undefined) {
      access = new RedisAccess(this.#connection, this.settings, `RedisBroker.${operation}`, this.#shared);
      accesses.set(operation, access);
    }
    return access;
  }

  /** Whether keys without a common hash tag may be on different nodes. */
  get isCluster(): boolean {
    return this.#connection.isCluster;
  }

  get clock(): Clock {
    return this.settings.clock;
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
    return this.clock === systemClock ? '' : this.wallNowDigits;
  }

  /** @throws TypeError - the name is not a valid queue name. */
  keysOf(queue: string): QueueKeys {
    const { keys: known } = this.#shared;
    let keys = known.get(queue);
    if (keys === undefined) {
      keys = new QueueKeys(queue);
      if (known.size === MAX_KNOWN_QUEUES) known.clear();
      known.set(queue, keys);
    }
    return keys;
  }

  /** KEYS of a script of a queue that also needs the SET of all queues. In a cluster that is on another node, and left out. */
  keysWithQueues(queue: string): string[] {
    const { prefix } = this.keysOf(queue);
    return this.isCluster ? [prefix] : [prefix, QUEUES_KEY];
  }

  /** Runs a script whose only key is the prefix of the queue's keys. Throws as `run`. */
  runIn(queue: string, script: Script, args: readonly ScriptArgument[]): Promise<ScriptReply> {
    return this.run(script, [this.keysOf(queue).prefix], args);
  }

  /** @throws EscapementError `ERR_BROKER_UNAVAILABLE` - Redis cannot be reached, or has not answered in time. */
  run(script: Script, keys: readonly string[], args: readonly ScriptArgument[]): Promise<ScriptReply> {
    return this.send((client) => script.run(client, keys, args));
  }

  /** As `run`, for a command, or for several that do not depend on one another. */
  send<T>(commands: (client: Redis | Cluster) => Promise<T>): Promise<T> {
    return this.#connection.run(this.op, commands);
  }

  /** @throws EscapementError `ERR_BROKER_UNAVAILABLE` - as for `run`. */
  subscribe(channel: string, listener: (message: Buffer) => void): Promise<void> {
    return this.#connection.subscribe(this.op, channel, listener);
  }

  unsubscribe(channel: string, listener: (message: Buffer) => void): void {
    this.#connection.unsubscribe(channel, listener);
  }

  /** Best effort: an error is ignored. */
  publish(channel: string, message: string): void {
    this.send((client) => client.publish(channel, message)).catch(() => undefined);
  }
}

/** What the accesses of one broker have in common. */
interface Shared {
  readonly keys: Map<string, QueueKeys>;
  /** By operation. */
  readonly accesses: Map<string, RedisAccess>;
}
