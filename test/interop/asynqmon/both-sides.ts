import { createServer, type RequestListener, type Server as HttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Redis } from 'ioredis';
import { Client, Inspector, Task, type LeasedTask, type TaskOptions } from '../../../src/tasks.ts';
import { tasksHandler } from '../../../src/tasks-http.ts';
import { RedisBroker } from '../../../src/tasks-redis.ts';
import { RedisProcess } from '../../redis/redis-process.ts';
import { Asynqmon } from './asynqmon.ts';

const HOUR_MS = 3_600_000;

export interface Question {
  readonly method: string;
  readonly path: string;
  /** What is not a string becomes JSON. */
  readonly body?: unknown;
}

export interface Answer {
  readonly status: number;
  readonly text: string;
  /** Undefined if it is not JSON. */
  readonly json: unknown;
}

/** Asynqmon on one side and our handler on the other, on one Redis. */
export class BothSides {
  readonly redis: Redis;
  readonly broker: RedisBroker;
  readonly inspector: Inspector;
  readonly client: Client;
  /** Queries that reached the Prometheus server of both. */
  readonly queries: URLSearchParams[] = [];
  readonly #database: RedisProcess;
  readonly #asynqmon: Asynqmon;
  readonly #prometheus: HttpServer;
  readonly #handler: HttpServer;

  private constructor(database: RedisProcess, asynqmon: Asynqmon, prometheus: HttpServer) {
    this.#database = database;
    this.#asynqmon = asynqmon;
    this.#prometheus = prometheus;
    this.redis = new Redis(database.url);
    this.broker = new RedisBroker({ url: database.url });
    this.client = new Client({ broker: this.broker });
    this.inspector = new Inspector({ broker: this.broker });
    this.#handler = createServer(
      tasksHandler({
        broker: this.broker,
        prometheusUrl: urlOf(prometheus),
        redisInfo: () => this.broker.redisInfo(),
      }),
    );
    prometheus.on('request', ({ url = '' }) => this.queries.push(new URL(url, 'http://a').searchParams));
  }

  static async start(program: string): Promise<BothSides> {
    const database = await RedisProcess.start();
    const prometheus = await listen(createServer(answerAsPrometheus));
    const asynqmon = await Asynqmon.start(program, `127.0.0.1:${database.port}`, urlOf(prometheus));
    const both = new BothSides(database, asynqmon, prometheus);
    await listen(both.#handler);
    return both;
  }

  /** @returns asynqmon's answer and ours. */
  async ask(question: Question): Promise<readonly [theirs: Answer, ours: Answer]> {
    return [await this.askThem(question), await this.askUs(question)];
  }

  askThem(question: Question): Promise<Answer> {
    return ask(this.#asynqmon.url, question);
  }

  askUs(question: Question): Promise<Answer> {
    return ask(urlOf(this.#handler), question);
  }

  /** Adds a task to queue `default`, whose payload is text. */
  async add(id: string, options: TaskOptions = {}, payload: string | Uint8Array = id): Promise<void> {
    await this.client.enqueue(new Task('work', Buffer.from(payload)), { taskId: id, ...options });
  }

  /** Two tasks in each state in queue `default`, which is paused; their ids are the state and a number. */
  async fill(): Promise<void> {
    for (const n of [1, 2]) {
      const failure = { error: `boom ${n}`, isFailure: true };
      await this.add(`completed${n}`, { retentionMs: n * HOUR_MS });
      const done = await this.#lease();
      await this.broker.writeResult(done, Buffer.from(`result ${n}`));
      await this.broker.complete(done);
      await this.add(`archived${n}`);
      await this.broker.archive(await this.#lease(), failure);
      await this.add(`retry${n}`, { maxRetry: n, deadline: new Date(Date.now() + HOUR_MS) });
      await this.broker.retry(await this.#lease(), failure, Date.now() + n * HOUR_MS);
      await this.add(`active${n}`, { timeoutMs: n * HOUR_MS });
      await this.#lease();
    }
    await this.redis.zadd('asynq:{default}:lease', 1, 'active2'); // its lease is over
    for (const n of [1, 2]) {
      await this.add(`scheduled${n}`, { processInMs: n * HOUR_MS });
      await this.add(`pending${n}`);
      await this.add(`aggregating${n}`, { group: 'g' });
    }
    await this.add('alone', { group: 'h' });
    await this.inspector.pauseQueue('default');
    await this.add('only', { queue: 'low' });
    await this.add('none', { queue: 'empty' });
    await this.inspector.deleteTask('empty', 'none');
  }

  /** A server that processes `active1`, and a scheduler that has enqueued three tasks. */
  async announce(): Promise<void> {
    const [worker, nowMs] = [{ taskId: 'active1', taskType: 'work', queue: 'default' }, Date.now()];
    const times = { startedAtMs: nowMs, deadlineMs: nowMs + HOUR_MS };
    const workers = [{ ...worker, payload: Buffer.from('p'), ...times }];
    await this.broker.announceServer(
      () => ({
        ...{ id: 's', host: 'h', pid: 7, concurrency: 10, queues: { default: 2, low: 1 } },
        ...{ strictPriority: true, status: 'active', startedAtMs: nowMs, workers },
      }),
      HOUR_MS,
    );
    const entry = { taskType: 'tick', nextEnqueueAtMs: nowMs + HOUR_MS };
    await this.broker.announceScheduler(
      'x',
      () => [
        {
          ...entry,
          id: 'a',
          spec: '@every 1h',
          payload: Buffer.from('p'),
          options: ['Queue("low")'],
          prevEnqueueAtMs: nowMs,
        },
        {
          ...entry,
          id: 'b',
          spec: '0 3 1 1 *',
          payload: Uint8Array.of(255),
          options: [],
          prevEnqueueAtMs: 0,
        },
      ],
      HOUR_MS,
    );
    for (const n of [1, 2, 3])
      await this.broker.recordEnqueueEvent('a', { taskId: `${n}`, atMs: nowMs + n * 1_000 });
  }

  async #lease(): Promise<LeasedTask> {
    const [task] = await this.broker.dequeue('default', 1, HOUR_MS);
    if (task === undefined) throw new Error('there is nothing to lease');
    return task;
  }

  async stop(): Promise<void> {
    await this.#asynqmon.stop();
    for (const server of [this.#handler, this.#prometheus]) {
      server.closeAllConnections();
      server.close();
    }
    await this.inspector.close();
    await this.client.close();
    await this.broker.close();
    this.redis.disconnect();
    await this.#database.stop();
  }
}

async function ask(root: string, { method, path, body }: Question): Promise<Answer> {
  const headers = { 'content-type': 'application/json' };
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const sent = body === undefined ? {} : { body: text, headers };
  const response = await fetch(`${root}/api${path}`, { method, redirect: 'manual', ...sent });
  const answer = await response.text();
  return { status: response.status, text: answer, json: parse(answer) };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

const answerAsPrometheus: RequestListener = (_, response) => {
  response.end('{"status":"success","data":{"resultType":"matrix","result":[]}}');
};

function urlOf(server: HttpServer): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function listen(server: HttpServer): Promise<HttpServer> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}
