import { EscapementError } from '../../../core/errors.ts';
import { requireIntegerAtLeast } from '../../../core/validate.ts';
import {
  decodeEnqueueEvent,
  decodeScheduleEntry,
  encodeEnqueueEvent,
  encodeScheduleEntry,
} from '../../wire/scheduler-codec.ts';
import { decodeServer, decodeWorker, encodeServer, encodeWorker } from '../../wire/server-codec.ts';
import { HISTORY_KEPT_MS } from '../broker-settings.ts';
import type { EnqueueEvent, Page, ScheduleEntry, ServerState } from '../broker.ts';
import {
  SCHEDULERS_KEY,
  SERVERS_KEY,
  WORKERS_KEY,
  schedulerHistoryKey,
  schedulerKey,
  serverKey,
  workersKey,
} from './keys.ts';
import type { RedisAccess } from './redis-access.ts';
import { secondsDown, secondsUp } from './redis-time.ts';
import type { ScriptArgument } from './script.ts';
import { ANNOUNCE_SCHEDULER } from './scripts/announce-scheduler.ts';
import { ANNOUNCE_SERVER } from './scripts/announce-server.ts';
import { RECORD_EVENT } from './scripts/record-event.ts';

/** asynq's. */
const MAX_EVENTS = 1_000;

/** Servers and schedulers, which show themselves again and again: what is not renewed is gone. */
export class Members {
  readonly #access: RedisAccess;

  constructor(access: RedisAccess) {
    this.#access = access;
  }

  async announceServer(server: ServerState, ttlMs: number): Promise<void> {
    const { host, pid, id } = server;
    const keys = [serverKey(host, pid, id), workersKey(host, pid, id)] as const;
    const args: ScriptArgument[] = [secondsUp(ttlMs), Buffer.from(encodeServer(server))];
    for (const worker of server.workers) args.push(worker.taskId, Buffer.from(encodeWorker(server, worker)));
    await this.#register(SERVERS_KEY, keys[0], ttlMs);
    await this.#register(WORKERS_KEY, keys[1], ttlMs);
    await this.#access.run(ANNOUNCE_SERVER, keys, args);
  }

  /** A server is known by its id; its keys have its host and its process, too. */
  async withdrawServer(id: string): Promise<void> {
    await this.#withdraw(SERVERS_KEY, id);
    await this.#withdraw(WORKERS_KEY, id);
  }

  async servers(): Promise<readonly ServerState[]> {
    const names = await this.#alive(SERVERS_KEY);
    const servers = await Promise.all(names.map((name) => this.#server(name)));
    return servers.flat();
  }

  async announceScheduler(id: string, entries: readonly ScheduleEntry[], ttlMs: number): Promise<void> {
    const key = schedulerKey(id);
    await this.#register(SCHEDULERS_KEY, key, ttlMs);
    const list = entries.map((entry) => Buffer.from(encodeScheduleEntry(entry)));
    await this.#access.run(ANNOUNCE_SCHEDULER, [key], [secondsUp(ttlMs), ...list]);
  }

  async withdrawScheduler(id: string): Promise<void> {
    const key = schedulerKey(id);
    await this.#access.ask((client) => client.zrem(SCHEDULERS_KEY, key));
    await this.#access.ask((client) => client.del(key));
  }

  async scheduleEntries(): Promise<readonly ScheduleEntry[]> {
    const names = await this.#alive(SCHEDULERS_KEY);
    const lists = await Promise.all(
      names.map((name) => this.#access.ask((client) => client.lrangeBuffer(name, '0', '-1'))),
    );
    return lists.flatMap((list) => readable(list.reverse(), decodeScheduleEntry));
  }

  async recordEnqueueEvent(entryId: string, event: EnqueueEvent): Promise<void> {
    const args = [
      secondsDown(event.atMs),
      Buffer.from(encodeEnqueueEvent(event)),
      MAX_EVENTS,
      secondsUp(HISTORY_KEPT_MS),
    ];
    await this.#access.run(RECORD_EVENT, [schedulerHistoryKey(entryId)], args);
  }

  async enqueueEvents(entryId: string, { page, size }: Page): Promise<readonly EnqueueEvent[]> {
    requireIntegerAtLeast('page.page', 1, page);
    requireIntegerAtLeast('page.size', 1, size);
    const [first, last] = [(page - 1) * size, page * size - 1];
    const events = await this.#access.ask((client) =>
      client.zrevrangeBuffer(schedulerHistoryKey(entryId), String(first), String(last)),
    );
    return readable(events, decodeEnqueueEvent);
  }

  /** Those that have not expired. Reads only: who announces itself removes the others. */
  #alive(registry: string): Promise<string[]> {
    const nowS = secondsDown(this.#access.wallNowMs);
    return this.#access.ask((client) => client.zrangebyscore(registry, nowS, '+inf'));
  }

  async #register(registry: string, key: string, ttlMs: number): Promise<void> {
    const nowMs = this.#access.wallNowMs;
    await this.#access.ask((client) =>
      Promise.all([
        client.zadd(registry, secondsUp(nowMs + ttlMs), key),
        client.zremrangebyscore(registry, '-inf', secondsDown(nowMs) - 1),
      ]),
    );
  }

  async #withdraw(registry: string, id: string): Promise<void> {
    const names = await this.#access.ask((client) => client.zrange(registry, '0', '-1'));
    for (const name of names) {
      if (!name.endsWith(`:${id}}`)) continue;
      await this.#access.ask((client) => client.zrem(registry, name));
      await this.#access.ask((client) => client.del(name));
    }
  }

  /** Nothing if it has expired meanwhile. */
  async #server(name: string): Promise<ServerState[]> {
    const workersName = name.replace(SERVERS_KEY, WORKERS_KEY);
    const [info, rows] = await this.#access.ask((client) =>
      Promise.all([client.getBuffer(name), client.hvalsBuffer(workersName)]),
    );
    const workers = readable(rows, decodeWorker);
    return readable(info === null ? [] : [info], decodeServer).map((server) => ({ ...server, workers }));
  }
}

/** One that nobody can read, because a later version has written it, does not hide the others. */
function readable<T>(messages: readonly Buffer[], decode: (message: Uint8Array) => T): T[] {
  return messages.flatMap((message) => {
    try {
      return [decode(message)];
    } catch (error) {
      if (error instanceof EscapementError && error.code === 'ERR_WIRE_MESSAGE') return [];
      throw error;
    }
  });
}
