/** What Redis has done, by its own account. */
import type { Redis } from 'ioredis';

export interface Counters {
  /** Also those that scripts call. */
  readonly commands: number;
  /** In and out. */
  readonly bytes: number;
  readonly usedMemory: number;
}

const FIELD = /^(\w+):([\d.]+)\r?$/gm;
const NS_PER_SECOND = 1e9;

export function parseInfo(info: string): ReadonlyMap<string, number> {
  return new Map([...info.matchAll(FIELD)].map(([, name = '', value = '']) => [name, Number(value)]));
}

/** @returns what Redis does for others while `action` runs: reading the counters is commands and bytes too. */
export async function countOthers(redis: Redis, action: () => Promise<unknown>): Promise<Counters> {
  const first = await readCounters(redis);
  const before = await readCounters(redis);
  await action();
  const after = await readCounters(redis);
  const own = minus(before, first);
  return minus(minus(after, before), own);
}

function minus(left: Counters, right: Counters): Counters {
  return {
    commands: left.commands - right.commands,
    bytes: left.bytes - right.bytes,
    usedMemory: left.usedMemory - right.usedMemory,
  };
}

export async function readCounters(redis: Redis): Promise<Counters> {
  const fields = parseInfo((await redis.info('stats')) + (await redis.info('memory')));
  const field = (name: string): number => fields.get(name) ?? Number.NaN;
  return {
    commands: field('total_commands_processed'),
    bytes: field('total_net_input_bytes') + field('total_net_output_bytes'),
    usedMemory: field('used_memory'),
  };
}

/** What its main thread has used so far, in nanoseconds: it does everything that commands and scripts ask for. */
export async function readCpuNs(redis: Redis): Promise<number> {
  const fields = parseInfo(await redis.info('cpu'));
  const field = (name: string): number => fields.get(name) ?? Number.NaN;
  return (field('used_cpu_sys_main_thread') + field('used_cpu_user_main_thread')) * NS_PER_SECOND;
}

/** Counts what clients send: what Redis counts as commands includes what scripts call. */
export class ClientCommands {
  count = 0;
  readonly #monitor: Redis;

  private constructor(monitor: Redis) {
    this.#monitor = monitor;
    monitor.on('monitor', (_time: string, _words: readonly string[], source: string) => {
      if (source !== 'lua') this.count++;
    });
  }

  static async watch(redis: Redis): Promise<ClientCommands> {
    return new ClientCommands(await redis.monitor());
  }

  /** All that Redis has said so far has been counted when this resolves. */
  async stop(redis: Redis): Promise<void> {
    const end = `end of the count ${process.hrtime.bigint()}`;
    const seen = new Promise<void>((resolve) => {
      this.#monitor.on('monitor', (_time: string, words: readonly string[]) => {
        if (words.includes(end)) resolve();
      });
    });
    await redis.echo(end);
    await seen;
    this.#monitor.disconnect();
  }
}
