/**
 * The leader of a replicated log, over HTTP. What cannot be answered at once waits in a purgatory, under the topics it depends on:
 *
 *     POST /records?timeoutMs=500    { "orders": ["…"], "payments": ["…"] }     until every in-sync replica has the records
 *     GET  /records?orders=12&payments=3&waitMs=500                             until there is a record to read in either topic
 *     GET  /records?orders=12&payments=3&waitMs=500&follower=follower-1         the same, by a follower: its offsets say what it has
 *
 * A topic has a high watermark: how far the slowest replica of the in-sync set is. Consumers read up to it, followers to the end.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import {
  DelayedOperation,
  DelayedOperationPurgatory,
  SystemTimer,
  TimerTask,
  type CompletionReason,
} from 'escapement';
import { z } from 'zod';

const recordsSchema = z.record(z.string(), z.array(z.string()));
/** Records of several topics, by topic. */
export type Records = z.infer<typeof recordsSchema>;

/** One answer carries at most so many records of a topic. */
const MAX_RECORDS = 1_000;

class Topic {
  readonly name: string;
  readonly records: string[] = [];
  /** Followers of the in-sync set, with the offset up to which each has the records. */
  readonly inSync = new Map<string, number>();
  highWatermark = 0;

  constructor(name: string) {
    this.name = name;
  }
}

/** Where a write ends, or where a reader is. */
interface Position {
  readonly topic: Topic;
  readonly offset: number;
}

/** A write that waits until every in-sync replica has it. Its completion reason is its answer. */
class Produce extends DelayedOperation {
  readonly #ends: readonly Position[];
  readonly #response: ServerResponse;

  constructor(ends: readonly Position[], timeoutMs: number, response: ServerResponse) {
    super(timeoutMs);
    this.#ends = ends;
    this.#response = response;
  }

  override tryComplete(): boolean {
    return this.#missing().length === 0 && this.forceComplete();
  }

  override onComplete(reason: CompletionReason): void {
    if (reason === 'tried') reply(this.#response, 200, offsets(this.#ends));
    if (reason === 'expired') reply(this.#response, 504, { missing: this.#missing() });
    if (reason === 'closed') reply(this.#response, 503, { error: 'the leader shuts down' });
    // 'forced': the client has hung up.
  }

  override onExpiration(): void {
    // onComplete has answered.
  }

  #missing(): object[] {
    return this.#ends
      .filter(({ topic, offset }) => topic.highWatermark < offset)
      .map(({ topic, offset }) => ({
        topic: topic.name,
        offset,
        behind: [...topic.inSync].filter(([, copied]) => copied < offset).map(([follower]) => follower),
      }));
  }
}

/** A long poll. As in Kafka it keeps no records while it waits, and reads the log when it completes. */
class Fetch extends DelayedOperation {
  readonly #from: readonly Position[];
  readonly #isFollower: boolean;
  readonly #response: ServerResponse;

  constructor(from: readonly Position[], waitMs: number, isFollower: boolean, response: ServerResponse) {
    super(waitMs);
    this.#from = from;
    this.#isFollower = isFollower;
    this.#response = response;
  }

  override tryComplete(): boolean {
    return this.#from.some(({ topic, offset }) => this.#endOf(topic) > offset) && this.forceComplete();
  }

  override onComplete(reason: CompletionReason): void {
    if (reason === 'tried' || reason === 'expired') reply(this.#response, 200, this.#read());
    if (reason === 'closed') reply(this.#response, 503, { error: 'the leader shuts down' });
  }

  override onExpiration(): void {
    // A long poll may end without records.
  }

  #read(): Records {
    return Object.fromEntries(
      this.#from.map(({ topic, offset }) => {
        const end = Math.min(this.#endOf(topic), offset + MAX_RECORDS);
        return [topic.name, topic.records.slice(offset, end)];
      }),
    );
  }

  #endOf(topic: Topic): number {
    return this.#isFollower ? topic.records.length : topic.highWatermark;
  }
}

/** The session of a follower: a task that is its own handle. Adding it again moves its deadline, so a heartbeat is one call. */
class Session extends TimerTask {
  readonly #end: () => void;

  constructor(timeoutMs: number, end: () => void) {
    super(timeoutMs);
    this.#end = end;
  }

  override run(): void {
    this.#end();
  }
}

export interface LeaderOptions {
  readonly topics: readonly string[];
  /** A follower that does not poll for so long leaves the in-sync set. */
  readonly sessionMs: number;
  readonly onSessionEnd?: (follower: string) => void;
}

export class Leader {
  /** Three purgatories on one timer. They are apart because a check visits all that is watched under its key. */
  readonly produces: DelayedOperationPurgatory<string, Produce>;
  readonly fetches: DelayedOperationPurgatory<string, Fetch>;
  readonly inSync: DelayedOperationPurgatory<string>;
  readonly #timer = new SystemTimer({ name: 'leader' });
  readonly #topics: ReadonlyMap<string, Topic>;
  readonly #sessions = new Map<string, Session>();
  readonly #options: LeaderOptions;
  readonly #server = createServer((request, response) => {
    response.once('close', () => {
      // A connection that is kept alive would keep a closed server waiting.
      if (!this.#server.listening) this.#server.closeIdleConnections();
    });
    this.#respond(request, response).catch((error: unknown) => {
      reply(response, 400, { error: String(error) });
    });
  });

  constructor(options: LeaderOptions) {
    this.#options = options;
    this.#topics = new Map(options.topics.map((name) => [name, new Topic(name)]));
    const timer = this.#timer;
    this.produces = new DelayedOperationPurgatory<string, Produce>('produces', { timer });
    this.fetches = new DelayedOperationPurgatory<string, Fetch>('fetches', { timer });
    this.inSync = new DelayedOperationPurgatory<string>('in-sync', { timer });
  }

  /** Returns the address. */
  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Resolves when so many followers are in sync in every topic. */
  followersInSync(size: number, options: { timeoutMs: number; signal?: AbortSignal }): Promise<number> {
    const topics = [...this.#topics.values()];
    const condition = (): number | undefined =>
      topics.every(({ inSync }) => inSync.size === size) ? size : undefined;
    return this.inSync.wait(this.#topics.keys(), condition, options);
  }

  /** Answers every pending request, and ends. */
  async close(): Promise<void> {
    for (const purgatory of [this.produces, this.fetches, this.inSync]) purgatory.close();
    this.#timer.close();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams: query } = new URL(request.url ?? '/', 'http://leader');
    if (pathname !== '/records') reply(response, 404, { error: 'there is only /records' });
    else if (request.method === 'POST')
      this.#produce(
        recordsSchema.parse(await json(request)),
        Number(query.get('timeoutMs') ?? 1_000),
        response,
      );
    else this.#fetch(query, response);
  }

  #produce(records: Records, timeoutMs: number, response: ServerResponse): void {
    const ends = Object.entries(records).map(([name, values]) => {
      const topic = this.#topic(name);
      return { topic, values, offset: topic.records.length + values.length };
    });
    const operation = new Produce(ends, timeoutMs, response);
    for (const { topic, values } of ends) {
      topic.records.push(...values);
      this.#changed(topic);
      this.fetches.checkAndComplete(topic.name); // followers read to the end
    }
    this.produces.tryCompleteElseWatch(
      operation,
      ends.map(({ topic }) => topic.name),
    );
    completeIfClientLeaves(operation, response);
  }

  #fetch(query: URLSearchParams, response: ServerResponse): void {
    const follower = query.get('follower') ?? undefined;
    const waitMs = Number(query.get('waitMs') ?? 500);
    const from = [...query.entries()]
      .filter(([name]) => name !== 'follower' && name !== 'waitMs')
      .map(([name, offset]) => ({ topic: this.#topic(name), offset: integer(name, offset) }));
    const operation = new Fetch(from, waitMs, follower !== undefined, response);
    if (follower !== undefined) this.#heardOf(follower, from);
    this.fetches.tryCompleteElseWatch(
      operation,
      from.map(({ topic }) => topic.name),
    );
    completeIfClientLeaves(operation, response);
  }

  /** A poll of a follower is its heartbeat, and acknowledges what is below its offsets. */
  #heardOf(follower: string, from: readonly Position[]): void {
    const session =
      this.#sessions.get(follower) ??
      new Session(this.#options.sessionMs, () => {
        this.#drop(follower);
      });
    this.#sessions.set(follower, session);
    this.#timer.add(session);
    for (const { topic, offset } of from) {
      // A follower that has been started again has less than before: it is not in sync until it has caught up.
      if (offset >= topic.highWatermark) topic.inSync.set(follower, offset);
      else topic.inSync.delete(follower);
      this.#changed(topic);
    }
  }

  /** Without the follower the watermark moves on, and completes the writes that waited for it. */
  #drop(follower: string): void {
    this.#sessions.delete(follower);
    for (const topic of this.#topics.values()) if (topic.inSync.delete(follower)) this.#changed(topic);
    this.#options.onSessionEnd?.(follower);
  }

  /** Moves the watermark, and checks what may wait for that, or for the in-sync set. */
  #changed(topic: Topic): void {
    const { name, records, inSync, highWatermark } = topic;
    topic.highWatermark = Math.max(highWatermark, Math.min(records.length, ...inSync.values()));
    this.inSync.checkAndComplete(name);
    if (topic.highWatermark === highWatermark) return;
    this.produces.checkAndComplete(name);
    this.fetches.checkAndComplete(name);
  }

  #topic(name: string): Topic {
    const topic = this.#topics.get(name);
    if (topic === undefined) throw new RangeError(`there is no topic '${name}'`);
    return topic;
  }
}

/** A pending request whose client hangs up leaves every key and the timer. One that was answered is complete: then it does nothing. */
function completeIfClientLeaves(operation: DelayedOperation, response: ServerResponse): void {
  response.once('close', () => operation.forceComplete());
}

function offsets(ends: readonly Position[]): Record<string, number> {
  return Object.fromEntries(ends.map(({ topic, offset }) => [topic.name, offset]));
}

function integer(name: string, text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw new RangeError(`${name} must be an integer >= 0. Received '${text}'`);
}

function reply(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(`${JSON.stringify(body)}\n`);
}
