/** What the cases ask of each task queue on Redis. */
import type { Role } from '../lib/part.ts';

export interface RedisAddress {
  readonly host: string;
  readonly port: number;
}

/** Tasks are numbered from 0, in the order in which they are enqueued. */
export interface OpenContestant {
  /** One task a call, by so many callers at once; each waits until its task is in Redis, and then enqueues the next. */
  enqueue(count: number, callers: number): Promise<void>;
  /** So many tasks a call, one call after the other. */
  enqueueBulk(count: number, batch: number): Promise<void>;
  /** Starts a worker that processes so many tasks at once. Resolves when it is connected. */
  start(concurrency: number): Promise<void>;
  /** Resolves when the handlers of so many tasks have run. */
  handled(count: number): Promise<void>;
  /** Enqueues so many a second, whatever becomes of them. @returns how long each took to its handler, in ms. */
  latenciesMs(count: number, perSecond: number): Promise<Float64Array>;
  /** What has gone wrong so far: a task was lost, or came twice. */
  problem(): string | undefined;
  /** Waits for what is under way, and writes it. */
  close(): Promise<void>;
}

export type OpenOn = (redis: RedisAddress) => Promise<OpenContestant>;

export interface Cannot {
  readonly cannot: string;
}

export interface RedisContestant {
  readonly name: string;
  readonly role: Role;
  readonly note?: string;
  readonly open: OpenOn | Cannot;
  /** Has no call for many tasks. */
  readonly hasNoBulk?: boolean;
}
