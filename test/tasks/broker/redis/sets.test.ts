import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { LONG_MS, newTask, QUEUE } from '../../../conformance/broker/support.ts';
import { redisSetup, type RedisSetup } from './setup.ts';

let setup: RedisSetup;

beforeEach(async () => {
  setup = await redisSetup();
});
afterEach(() => setup.dispose());

describe('tasks in a set', () => {
  test('tasks in a set are listed with those of their own group, also if its name is the beginning of another name', async () => {
    const { broker } = setup;
    await broker.enqueue(newTask({ id: 'own', group: 'a:b' }));
    const limits = { graceMs: LONG_MS, maxDelayMs: 0, maxSize: 1 };
    await broker.takeGroup(QUEUE, 'a:b', limits, LONG_MS);
    const idsOf = async (group: string): Promise<string[]> => {
      const records = await broker.tasks(QUEUE, 'aggregating', { page: 1, size: 10 }, group);
      return records.map(({ message }) => message.id);
    };
    expect(await idsOf('a:b')).toEqual(['own']);
    expect(await idsOf('a')).toEqual([]);
  });
});
