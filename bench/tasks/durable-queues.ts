/** Queues that keep tasks on a disk: our broker, BullMQ on a Redis of its own, a table of SQLite; and two raw appends a task. */
import { stat } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { DatabaseSync, type DatabaseSyncInstance, type StatementSyncInstance } from '@photostructure/sqlite';
import type { EmbeddedBrokerOptions } from 'escapement/tasks';
import { RedisProcess } from '../../test/redis/redis-process.ts';
import { MESSAGE_BYTES, newMessage } from '../diskqueue/messages.ts';
import { FILE, openRaw } from '../diskqueue/stores.ts';
import { baseline, ours, rival, type Cannot, type Contestant } from '../lib/part.ts';
import { missing } from '../redis/bench-redis.ts';
import { openBullmq } from '../redis/contestants.ts';
import type { CountedQueue, Payload } from '../redis/contestant.ts';
import { OurTasks, taskQueue } from './our-tasks.ts';

type Listener = (payload: Payload) => void;

export type DurableQueue = Omit<CountedQueue, 'addMany'>;

/** Opens a queue whose files are in a folder. */
export type OpenDurable = (folder: string) => Promise<DurableQueue>;

export const CONCURRENCY = 100;
/** Of a claim. */
const LEASE_MS = 30_000;

/** Two appends a task: that it was enqueued, and that it is done. All pending ones are one write and one sync. */
const openAppends: OpenDurable = async (folder) => {
  const store = await openRaw(true)(folder);
  let onDone: Listener | undefined;
  let done = 0;
  const append = (payload: Payload): Promise<void> => store.put(newMessage(payload.number));
  return {
    add: async (payload) => {
      await append(payload);
      if (onDone === undefined) return;
      await append(payload);
      done++;
      onDone(payload);
    },
    work: (_concurrency, _handle, listener) => {
      onDone = listener;
      return Promise.resolve();
    },
    left: async () => (await stat(`${folder}/${FILE}`)).size / MESSAGE_BYTES - 2 * done,
    close: () => store.close(),
  };
};

const openOurs =
  (options: EmbeddedBrokerOptions, isInFolder = true): OpenDurable =>
  async (folder) =>
    taskQueue(await OurTasks.open(isInFolder ? { dataPath: folder, ...options } : options));

/** A server of its own for each round: what is timed begins when it answers. */
const openOnRedis =
  (appendfsync: string): OpenDurable =>
  async (folder) => {
    const args = ['--dir', folder, '--appendonly', 'yes', '--appendfsync', appendfsync];
    const server = await RedisProcess.start({ args });
    const queue = openBullmq({ host: '127.0.0.1', port: server.port });
    return {
      ...queue,
      close: async () => {
        await queue.close();
        await server.stop();
      },
    };
  };

interface Row {
  readonly id: number;
  readonly payload: string;
}

interface Enqueued {
  readonly payload: Payload;
  readonly resolve: () => void;
}

/**
 * A table, and a claim with a lease. Everything that is pending in a turn is one transaction, and so one sync: what was enqueued is
 * inserted, what was processed is deleted, and what waits is claimed.
 */
class SqliteQueue implements DurableQueue {
  readonly #db: DatabaseSyncInstance;
  readonly #insert: StatementSyncInstance;
  readonly #claim: StatementSyncInstance;
  readonly #delete: StatementSyncInstance;
  #enqueued: Enqueued[] = [];
  #processed: Row[] = [];
  #free = 0;
  #onDone: Listener | undefined;
  #running: Promise<void> | undefined;

  constructor(db: DatabaseSyncInstance) {
    this.#db = db;
    db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
    db.exec(
      'CREATE TABLE task (id INTEGER PRIMARY KEY, payload TEXT NOT NULL, lease_ends_ms INTEGER NOT NULL)',
    );
    this.#insert = db.prepare('INSERT INTO task (payload, lease_ends_ms) VALUES (?, 0)');
    this.#claim = db.prepare(
      'UPDATE task SET lease_ends_ms = ? WHERE id IN (SELECT id FROM task WHERE lease_ends_ms < ? ORDER BY id LIMIT ?) ' +
        'RETURNING id, payload',
    );
    this.#delete = db.prepare('DELETE FROM task WHERE id = ?');
  }

  add(payload: Payload): Promise<void> {
    return new Promise((resolve) => {
      this.#enqueued.push({ payload, resolve });
      this.#running ??= this.#run();
    });
  }

  work(concurrency: number, _handle?: Listener, onDone?: Listener): Promise<void> {
    this.#free = concurrency;
    this.#onDone = onDone;
    return Promise.resolve();
  }

  left(): Promise<number> {
    const { count } = this.#db.prepare('SELECT count(*) AS count FROM task').get() as { count: number };
    return Promise.resolve(count);
  }

  async close(): Promise<void> {
    await this.#running;
    this.#db.close();
  }

  async #run(): Promise<void> {
    await nextTurn();
    while (this.#enqueued.length + this.#processed.length > 0) {
      const [enqueued, processed] = [this.#enqueued, this.#processed];
      this.#enqueued = [];
      this.#processed = this.#commit(enqueued, processed);
      for (const { resolve } of enqueued) resolve();
      for (const { payload } of processed) this.#onDone?.(JSON.parse(payload) as Payload);
      await nextTurn(); // the handlers have returned
    }
    this.#running = undefined;
  }

  #commit(enqueued: readonly Enqueued[], processed: readonly Row[]): Row[] {
    const nowMs = Date.now();
    this.#db.exec('BEGIN');
    for (const { payload } of enqueued) this.#insert.run(JSON.stringify(payload));
    for (const { id } of processed) this.#delete.run(id);
    const claimed: unknown[] = this.#free === 0 ? [] : this.#claim.all(nowMs + LEASE_MS, nowMs, this.#free);
    this.#db.exec('COMMIT');
    return claimed as Row[];
  }
}

const openSqlite: OpenDurable = (folder) =>
  Promise.resolve(new SqliteQueue(new DatabaseSync(`${folder}/tasks.db`)));

const onRedis = (appendfsync: string): OpenDurable | Cannot =>
  missing === undefined ? openOnRedis(appendfsync) : { cannot: missing };

/** All of them; our broker in memory is there for comparison. */
export const DURABLE: readonly Contestant<OpenDurable>[] = [
  baseline('raw appends', openAppends),
  rival('bullmq, everysec', onRedis('everysec')),
  rival('bullmq, always', onRedis('always')),
  rival('sqlite', openSqlite),
  ours('ours: always', openOurs({})),
  ours('ours: os', openOurs({ durability: 'os' })),
  ours('ours: interval', openOurs({ durability: 'interval' })),
  ours('ours: in memory', openOurs({}, false)),
];
