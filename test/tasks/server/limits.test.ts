import { Inspector } from 'escapement/tasks';
import { describe, expect } from 'vitest';
import { Held, it, type World } from './support/world.ts';

const RATE = { tasks: 10, perMs: 1_000 };

/** What runs, and what has run: `+job` at a start, `-job` at an end. */
class Log {
  readonly lines: string[] = [];
  readonly running: string[] = [];
  /** Keys of the tasks that ran at each start: the first letters of their types. */
  readonly together: string[] = [];

  handler(world: World, runMs: (type: string) => number) {
    return async ({ type }: { readonly type: string }): Promise<void> => {
      this.lines.push(`+${type}`);
      this.running.push(type);
      this.together.push(this.running.map((one) => one[0]).join(''));
      await new Promise<void>((resolve) => world.clock.setTimeout(resolve, runMs(type)));
      this.running.splice(this.running.indexOf(type), 1);
      this.lines.push(`-${type}`);
    };
  }
}

it('limits of a server are stored when it starts, and stay when it ends', async ({ world }) => {
  await world.broker.setLimits('kept', { concurrency: 7 });
  const limits = { default: { concurrency: 2, rate: RATE }, other: { perKey: { concurrency: 1 } } };
  const server = await world.start(() => undefined, { limits });
  expect(await world.broker.limits('default')).toEqual({ concurrency: 2, rate: RATE });
  expect(await world.broker.limits('other')).toEqual({ perKey: { concurrency: 1 } });
  await server.shutdown();
  expect(await world.broker.limits('default')).toMatchObject({ concurrency: 2 });
  expect(await world.broker.limits('kept')).toEqual({ concurrency: 7 });
});

it('limits that are stored before a server takes its first task hold for that task', async ({ world }) => {
  for (let n = 0; n < 5; n++) await world.enqueue();
  const held = new Held();
  await world.start(held.handler, { limits: { default: { concurrency: 2 } } });
  expect(held.runs).toHaveLength(2);
});

it('limits that are not valid are refused, and change nothing', async ({ world }) => {
  const inspector = new Inspector({ broker: world.broker });
  await inspector.setLimits('default', { concurrency: 3 });
  for (const [limits, message] of [
    [{ concurrency: 0 }, 'limits.concurrency must be an integer of at least 1. Received 0'],
    [{ rate: { tasks: 1 } }, 'limits.rate.perMs must be a number of milliseconds. Received undefined'],
    [{ rate: { ...RATE, burst: 0 } }, 'limits.rate.burst must be an integer of at least 1. Received 0'],
    [
      { perKey: { concurrency: 1.5 } },
      'limits.perKey.concurrency must be an integer of at least 1. Received 1.5',
    ],
    [{ perKey: 1 }, 'limits.perKey must be an object. Received 1'],
    [{ perkey: {} }, 'perkey'],
  ] as const) {
    await expect(inspector.setLimits('default', limits as never)).rejects.toThrow(message);
    await expect(world.broker.setLimits('new', limits as never)).rejects.toThrow(message);
  }
  expect(await inspector.limits('default')).toEqual({ concurrency: 3 });
  expect(await world.broker.queues()).toEqual(['default']);
});

describe('servers with limits', () => {
  it('the tasks of a key run in order, one at a time, and keys run at once', async ({ world }) => {
    const log = new Log();
    const handler = log.handler(world, (type) => 100 + 37 * type.charCodeAt(type.length - 1));
    const limits = { default: { perKey: { concurrency: 1 } } };
    for (let servers = 0; servers < 2; servers++) await world.start(handler, { limits, concurrency: 4 });
    for (let n = 1; n <= 9; n++) {
      for (const account of 'abcdef') await world.enqueue(`${account}${n}`, undefined, { key: account });
    }
    await world.advance(60_000);
    for (const keys of log.together) expect(new Set(keys).size).toBe(keys.length);
    expect(Math.max(...log.together.map((keys) => keys.length))).toBe(6);
    for (const account of 'abcdef') {
      const lines = log.lines.filter((line) => line[1] === account);
      expect(lines).toEqual(
        [1, 2, 3, 4, 5, 6, 7, 8, 9].flatMap((n) => [`+${account}${n}`, `-${account}${n}`]),
      );
    }
  });

  it('two servers together start each task as soon as the rate allows it', async ({ world }) => {
    const startedAtMs: number[] = [];
    const beganAtMs = world.clock.now();
    const handler = (): unknown => startedAtMs.push(world.clock.now() - beganAtMs);
    for (let n = 0; n < 12; n++) await world.enqueue();
    const limits = { default: { rate: { tasks: 2, perMs: 1_000, burst: 3 } } };
    for (let servers = 0; servers < 2; servers++) await world.start(handler, { limits });
    await world.advance(10_000);
    expect(startedAtMs).toEqual([0, 0, 0, 500, 1_000, 1_500, 2_000, 2_500, 3_000, 3_500, 4_000, 4_500]);
  });

  it('strict priority passes over a queue that is held back, until it has a place', async ({ world }) => {
    const log = new Log();
    const options = { concurrency: 2, strictPriority: true, queues: { high: 2, low: 1 } };
    for (const type of ['low1', 'low2', 'low3', 'high1', 'high2', 'high3'])
      await world.enqueue(type, undefined, { queue: type.slice(0, -1) });
    const handler = log.handler(world, () => 1_000);
    await world.start(handler, { ...options, limits: { high: { concurrency: 1 } } });
    await world.advance(10_000);
    const started = log.lines.filter((line) => line.startsWith('+'));
    expect(started).toEqual(['+high1', '+low1', '+high2', '+low2', '+high3', '+low3']);
  });
});
