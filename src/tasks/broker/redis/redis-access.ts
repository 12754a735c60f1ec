import type { Cluster, Redis } from 'ioredis';
import { systemClock, type Clock } from '../../../core/clock.ts';
import type { RedisConnection } from './connection.ts';
import { QueueKeys } from './keys.ts';
import type { ResolvedBrokerSettings } from '../broker-settings.ts';
import type { Script, ScriptArgument, ScriptReply } from './script.ts';

/** What errors of the connection name: it is part of whatever was asked for. */
const OPERATION = 'RedisBroker';

/** Queues whose keys are at hand: more than anybody serves. A program with a queue for each user makes them anew. */
const MAX_KNOWN_QUEUES = 1_000;

/** What every operation of the broker needs: a client, the time, and keys. */
export class RedisAccess {
  readonly options: ResolvedBrokerSettings;
  readonly #connection: RedisConnection;
  readonly #keys = new Map<string, QueueKeys>();

  constructor(connection: RedisConnection, options: ResolvedBrokerSettings) {
    this.#connection = connection;
    this.options = options;
  }

  /** Whether keys that have no common hash tag may be on different nodes. */
  get isCluster(): boolean {
    return this.#connection.isCluster;
  }

  get clock(): Clock {
    return this.options.clock;
  }

  get wallNowMs(): number {
    return this.options.clock.wallNow();
  }

  /** Whole milliseconds, for scripts that make seconds and nanoseconds of them. */
  get wallNowDigits(): string {
    return String(Math.floor(this.wallNowMs));
  }

  /** As `wallNowDigits`, if the broker has a clock of its own (in tests); else empty: Redis reads its own clock then. */
  get virtualNowDigits(): string {
    return this.clock === systemClock ? '' : this.wallNowDigits;
  }

  /** @throws TypeError - a queue cannot have that name. */
  keysOf(queue: string): QueueKeys {
    let keys = this.#keys.get(queue);
    if (keys === undefined) {
      keys = new QueueKeys(queue);
      if (this.#keys.size === MAX_KNOWN_QUEUES) this.#keys.clear();
      this.#keys.set(queue, keys);
    }
    return keys;
  }

  /** @throws EscapementError `ERR_BROKER_UNAVAILABLE` - Redis cannot be reached, or has not answered. */
  run(script: Script, keys: readonly string[], args: readonly ScriptArgument[]): Promise<ScriptReply> {
    return this.ask((client) => script.run(client, keys, args));
  }

  /** As `run`, for a command, or some that have nothing to do with one another. */
  async ask<T>(question: (client: Redis | Cluster) => Promise<T>): Promise<T> {
    return await this.#connection.run(OPERATION, question);
  }

  /** @throws EscapementError `ERR_BROKER_UNAVAILABLE` - as for `run`. */
  async subscribe(channel: string, tell: (message: Buffer) => void): Promise<void> {
    await this.#connection.subscribe(OPERATION, channel, tell);
  }

  unsubscribe(channel: string, tell: (message: Buffer) => void): void {
    this.#connection.unsubscribe(channel, tell);
  }

  /** What cannot be told is not told: a hint. */
  publish(channel: string, message: string): void {
    this.ask((client) => client.publish(channel, message)).catch(() => undefined);
  }
}
