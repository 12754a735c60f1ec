import { describe, expect, it } from 'vitest';
import {
  QueueKeys,
  schedulerHistoryKey,
  schedulerKey,
  serverKey,
  workersKey,
} from '../../../../src/tasks/broker/redis/keys.ts';
import { newTaskOf } from '../../../../src/tasks/task-options.ts';
import { Task } from '../../../../src/tasks/task.ts';

const keys = new QueueKeys('low');

/** Returns the hash tag as Redis defines it: the text between the first `{` and the next `}`, or the whole key if that is empty. */
function hashTagOf(key: string): string {
  const from = key.indexOf('{') + 1;
  const to = key.indexOf('}', from);
  return to > from ? key.slice(from, to) : key;
}

describe('the keys of a queue', () => {
  it("are asynq's", () => {
    expect(keys).toMatchObject({
      prefix: 'asynq:{low}:',
      taskPrefix: 'asynq:{low}:t:',
      groupPrefix: 'asynq:{low}:g:',
      pending: 'asynq:{low}:pending',
      active: 'asynq:{low}:active',
      lease: 'asynq:{low}:lease',
      scheduled: 'asynq:{low}:scheduled',
      retry: 'asynq:{low}:retry',
      archived: 'asynq:{low}:archived',
      completed: 'asynq:{low}:completed',
      paused: 'asynq:{low}:paused',
      groups: 'asynq:{low}:groups',
      aggregationSets: 'asynq:{low}:aggregation_sets',
      processed: 'asynq:{low}:processed',
      failed: 'asynq:{low}:failed',
    });
    expect(keys.task('1-2')).toBe('asynq:{low}:t:1-2');
    expect(keys.group('g')).toBe('asynq:{low}:g:g');
  });

  it('keys of counts have UTC days', () => {
    const lastOfTheDay = Date.UTC(2026, 10, 21, 23, 59, 59, 999);
    expect(keys.processedOn(lastOfTheDay)).toBe('asynq:{low}:processed:2026-11-21');
    expect(keys.failedOn(lastOfTheDay + 1)).toBe('asynq:{low}:failed:2026-11-22');
  });

  it('the key of a unique lock begins with the prefix of its queue', () => {
    const task = new Task('t', { user_id: 42 });
    const digest = '1181f89307fa271072c095747d5813cc';
    const { message } = newTaskOf(task, { queue: 'low', uniqueTtlMs: 1_000 }, 0);
    expect(message.uniqueKey).toBe(`${keys.prefix}unique:t:${digest}`);
  });

  it.each(['low', 'a}b', '{', '{x}', 'with space', 'ä:😀'])(
    'all keys of a queue are on one cluster node: %s',
    (queue) => {
      const tags = (Object.values(new QueueKeys(queue)) as string[]).map(hashTagOf);
      expect(new Set(tags).size).toBe(1);
    },
  );

  it.each(['}', '}x', '', ' ', '\ud83d', undefined])('the queue name %j is rejected', (queue) => {
    expect(() => new QueueKeys(queue as string)).toThrow(/^queue must be/);
  });
});

describe('keys of servers and schedulers', () => {
  it("are asynq's", () => {
    expect(serverKey('h', 7, 's')).toBe('asynq:servers:{h:7:s}');
    expect(workersKey('h', 7, 's')).toBe('asynq:workers:{h:7:s}');
    expect(schedulerKey('h:7:s')).toBe('asynq:schedulers:{h:7:s}');
    expect(schedulerHistoryKey('e')).toBe('asynq:scheduler_history:e');
  });
});
