import { readdirSync } from 'node:fs';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Script } from '../../../../src/tasks/broker/redis/script.ts';
import { RedisProcess } from '../../../redis/redis-process.ts';
import { runs } from '../../../runs.ts';
import { CASES, type ScriptCase } from './scripts-cases.ts';
import {
  callOf,
  errorOf,
  fill,
  fillWithKeys,
  keysTouchedBy,
  MAKE,
  makeBroker,
  replay,
  restore,
  snapshotOf,
  typeOf,
  type ScriptCall,
  type ScriptsWorld,
  type Snapshot,
} from './scripts-world.ts';

const FOLDER = new URL('../../../../src/tasks/broker/redis/', import.meta.url);

/** Keys that only queues with keys or limits have. */
const OURS = /:x:(?:limits|waiting|first|ring|parked|run|rates)$/u;

/** Wrong types of each key that are tried. Which one makes no difference to a check that is missing. */
const TYPES = runs(5);

const scripts = await allScripts();
let server: RedisProcess;
let redis: Redis;

beforeAll(async () => {
  server = await RedisProcess.start();
  redis = new Redis(server.url);
  // A snapshot shows a listpack in its own order. In a hash table even a read may move fields, so the dump would differ.
  await redis.config('SET', 'hash-max-listpack-value', 65_536);
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

test('every script of the broker has a case', () => {
  expect(Object.keys(CASES).sort()).toEqual([...scripts.keys()].sort());
});

describe('a script that finds a key of a wrong type changes nothing, and names the key', () => {
  for (const [name, script] of scripts) {
    test(`${name} changes nothing if a key has a wrong type, and its error names the key`, async () => {
      for (const one of CASES[name] ?? []) await checkCase(script, one);
    });

    const { inFlow } = script;
    if (inFlow === undefined) continue;
    test(`${name} changes nothing in a queue with limits if a key has a wrong type, and its error names the key`, async () => {
      for (const one of CASES[name] ?? []) await checkCase(inFlow, { ...one, hasKeys: true }, OURS);
    });
  }
});

/** @param which - the keys that are checked. */
async function checkCase(script: Script, one: ScriptCase, which = /^/u): Promise<void> {
  const world: ScriptsWorld = { ...makeBroker(server.url), redis };
  try {
    await redis.flushdb();
    await (one.hasKeys === true ? fillWithKeys : fill)(world);
    const call = await callOf(script, world, one.act);
    await restore(redis, call.before);
    const keys = await keysTouchedBy(redis, () => replay(script, redis, call));
    let current = await snapshotOf(redis);
    for (const [nth, key] of keys.filter((each) => which.test(each)).entries()) {
      const right = typeOf(key);
      const wrong = Object.keys(MAKE).filter((type) => type !== right);
      for (let more = 0; more < Math.min(TYPES, wrong.length); more++) {
        const type = wrong[(nth + more) % wrong.length] as string;
        await restore(redis, call.before, current);
        current = await checkKey(script, call, one, key, right, type);
      }
    }
  } finally {
    await world.broker.close();
  }
}

/** @returns what the script has left in the database. */
async function checkKey(
  script: Script,
  call: ScriptCall,
  { skips, replaces }: ScriptCase,
  key: string,
  right: string,
  type: string,
): Promise<Snapshot> {
  await redis.del(key);
  await MAKE[type]?.(redis, key);
  const before = await snapshotOf(redis);
  const error = await errorOf(replay(script, redis, call));
  const after = await snapshotOf(redis);
  const what = `${key}, which is a ${type}`;
  if (replaces?.test(key) === true) {
    expect(error, what).toBeUndefined();
  } else if (skips?.test(key) === true) {
    expect(error, what).toBeUndefined();
    expect(after.get(key), what).toEqual(before.get(key));
  } else {
    expect(after, what).toEqual(before);
    expect(String(error), what).toContain(`the Redis key '${key}' must be a ${right}. It is a ${type}`);
  }
  return after;
}

async function allScripts(): Promise<Map<string, Script>> {
  const found = new Map<string, Script>();
  for (const file of readdirSync(FOLDER)) {
    if (file === 'lease-thread-main.ts') continue; // Importing it runs it.
    const exports = (await import(new URL(file, FOLDER).href)) as Record<string, unknown>;
    for (const [name, value] of Object.entries(exports)) if (value instanceof Script) found.set(name, value);
  }
  return new Map([...found].sort());
}
