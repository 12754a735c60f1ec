/** Queues that keep tasks on a disk: our broker, BullMQ on a Redis of its own, a table of SQLite; and two raw appends a task. */
import { stat } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { DatabaseSync, enhance } from '@photostructure/sqlite';
import type { EmbeddedBrokerOptions } from 'escapement/tasks';
import { better, defineQueue, defineWorker, JobStatus, type Worker } from 'plainjob';
import { RedisProcess } from '../../test/redis/redis-process.ts';
import { MESSAGE_BYTES, newMessage } from '../diskqueue/messages.ts';
import { FILE, openRaw } from '../diskqueue/stores.ts';
import { baseline, ours, rival, type Contestant } from '../lib/part.ts';
import { withRedis } from '../redis/bench-redis.ts';
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
const openSqlite: OpenDurable = (folder) => {
  const db = new DatabaseSync(`${folder}/tasks.db`);
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
  db.exec(
    'CREATE TABLE task (id INTEGER PRIMARY KEY, payload TEXT NOT NULL, lease_ends_ms INTEGER NOT NULL)',
  );
  const insertion = db.prepare('INSERT INTO task (payload, lease_ends_ms) VALUES (?, 0)');
  const claim = db.prepare(
    'UPDATE task SET lease_ends_ms = ? WHERE id IN (SELECT id FROM task WHERE lease_ends_ms < ? ORDER BY id LIMIT ?) ' +
      'RETURNING id, payload',
  );
  const deletion = db.prepare('DELETE FROM task WHERE id = ?');
  let enqueued: Enqueued[] = [];
  let processed: Row[] = [];
  let free = 0;
  let onDone: Listener | undefined;
  let running: Promise<void> | undefined;

  const commit = (added: readonly Enqueued[], done: readonly Row[]): Row[] => {
    const nowMs = Date.now();
    db.exec('BEGIN');
    for (const { payload } of added) insertion.run(JSON.stringify(payload));
    for (const { id } of done) deletion.run(id);
    const claimed: unknown[] = free === 0 ? [] : claim.all(nowMs + LEASE_MS, nowMs, free);
    db.exec('COMMIT');
    return claimed as Row[];
  };

  const run = async (): Promise<void> => {
    await nextTurn();
    while (enqueued.length + processed.length > 0) {
      const [added, done] = [enqueued, processed];
      enqueued = [];
      processed = commit(added, done);
      for (const { resolve } of added) resolve();
      for (const { payload } of done) onDone?.(JSON.parse(payload) as Payload);
      await nextTurn(); // the handlers have returned
    }
    running = undefined;
  };

  return Promise.resolve({
    add: (payload) =>
      new Promise<void>((resolve) => {
        enqueued.push({ payload, resolve });
        running ??= run();
      }),
    work: (concurrency, _handle, listener) => {
      free = concurrency;
      onDone = listener;
      return Promise.resolve();
    },
    left: () => {
      const { count } = db.prepare('SELECT count(*) AS count FROM task').get() as { count: number };
      return Promise.resolve(count);
    },
    close: async () => {
      await running;
      db.close();
    },
  });
};

const nothing = (): void => undefined;
const SILENT = { error: nothing, warn: nothing, info: nothing, debug: nothing };

/** Takes one job after the other, and commits the insertion, the claim and the end of each by itself. */
const openPlainjob: OpenDurable = (folder) => {
  const db = enhance(new DatabaseSync(`${folder}/jobs.db`));
  const queue = defineQueue({ connection: better(db), logger: SILENT });
  db.exec('PRAGMA synchronous = FULL'); // it has set NORMAL, which the loss of power does not survive
  let worker: Worker | undefined;
  return Promise.resolve({
    add: (payload) => Promise.resolve(queue.add('work', payload)),
    work: (_concurrency, _handle, onDone) => {
      const onCompleted = ({ data }: { readonly data: string }): void =>
        onDone?.(JSON.parse(data) as Payload);
      worker = defineWorker('work', nothing, { queue, logger: SILENT, pollIntervall: 1, onCompleted });
      void worker.start();
      return Promise.resolve();
    },
    left: () => {
      const states = [JobStatus.Pending, JobStatus.Processing];
      return Promise.resolve(states.reduce((sum, status) => sum + queue.countJobs({ status }), 0));
    },
    close: async () => {
      await worker?.stop();
      queue.close();
    },
  });
};

/** All of them; our broker in memory is there for comparison. */
export const DURABLE: readonly Contestant<OpenDurable>[] = [
  baseline('raw appends', openAppends),
  rival('bullmq, everysec', withRedis(openOnRedis('everysec'))),
  rival('bullmq, always', withRedis(openOnRedis('always'))),
  rival('sqlite', openSqlite),
  rival('plainjob', openPlainjob),
  ours('ours: always', openOurs({})),
  ours('ours: os', openOurs({ durability: 'os' })),
  ours('ours: interval', openOurs({ durability: 'interval' })),
  ours('ours: in memory', openOurs({}, false)),
];
