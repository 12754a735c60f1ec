import { describe, expect, test } from 'vitest';
import { Task, type TaskInfo } from 'escapement/tasks';
import { openBench } from './support/bench.ts';

/** A task of that payload that is done, with that result. */
async function done(payload: unknown, result?: Uint8Array): Promise<TaskInfo> {
  const { broker, client, inspector, lease } = await openBench();
  await client.enqueue(new Task('work', payload, { taskId: 'a', retentionMs: 60_000 }));
  const task = await lease();
  if (result !== undefined) await broker.writeResult(task, result);
  await broker.complete(task);
  return inspector.waitFor('a');
}

describe('a TaskInfo', () => {
  test('parses its payload and its result as JSON', async () => {
    const info = await done([1, 2], Buffer.from('{"sum":3}'));
    expect(info.json<number[]>()).toEqual([1, 2]);
    expect(info.resultJson<{ sum: number }>()).toEqual({ sum: 3 });
  });

  test('returns undefined as the JSON of a result that was not written', async () => {
    expect((await done(1)).resultJson()).toBeUndefined();
  });

  test.each([
    ['a payload that is not JSON', () => done(Buffer.from('{')), 'json', 'payload'],
    ['a payload that is not UTF-8', () => done(Uint8Array.of(0xff)), 'json', 'payload'],
    ['no payload', () => done(undefined), 'json', 'payload'],
    ['a result that is not JSON', () => done(1, Buffer.from('done')), 'resultJson', 'result'],
    ['an empty result', () => done(1, Buffer.alloc(0)), 'resultJson', 'result'],
  ] as const)('throws an error that names the task for %s', async (_, make, method, what) => {
    const info = await make();
    expect(() => info[method]()).toThrow(
      expect.objectContaining({
        name: 'EscapementError',
        code: 'ERR_TASK_PAYLOAD',
        message: `${what} of task 'a' of queue 'default' is not JSON`,
        cause: expect.any(Error) as Error,
      }),
    );
  });

  test('waits for its task again by its id and queue alone', async () => {
    const { add, broker, client, inspector, lease } = await openBench();
    await add('a', { retentionMs: 60_000 });
    await broker.complete(await lease());
    const { id, queue } = await inspector.getTaskInfo('default', 'a');
    expect(await inspector.waitFor({ id, queue })).toMatchObject({ state: 'completed' });
    await client.close();
  });
});
