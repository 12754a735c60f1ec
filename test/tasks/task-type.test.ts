import { type } from 'arktype';
import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineTask, type StandardSchema, type TaskData, type TaskType } from 'escapement/tasks';
import { openBench } from './support/bench.ts';

interface Resize {
  readonly path: string;
  readonly width: number;
}

const LIBRARIES: [string, StandardSchema<Resize>][] = [
  ['zod', z.object({ path: z.string(), width: z.number() })],
  ['valibot', v.object({ path: v.string(), width: v.number() })],
  ['arktype', type({ path: 'string', width: 'number' })],
];

describe.each(LIBRARIES)('a task type with a schema of %s', (_, schema) => {
  const resize = defineTask('image:resize', { schema, maxRetry: 3, queue: 'images' });

  test('takes a payload that is right', async () => {
    const { client } = await openBench();
    const info = await client.enqueue(resize.task({ path: 'cat.jpg', width: 640 }));
    expect(info).toMatchObject({ type: 'image:resize', maxRetry: 3, queue: 'images' });
    expect(JSON.parse(new TextDecoder().decode(info.payload))).toEqual({ path: 'cat.jpg', width: 640 });
  });

  test('says what is wrong with one that is not, and where', async () => {
    const { client, inspector } = await openBench();
    const wrong = resize.task({ path: 'cat.jpg', width: 'wide' as unknown as number });
    await expect(client.enqueue(wrong)).rejects.toMatchObject({
      code: 'ERR_TASK_PAYLOAD',
      message: expect.stringMatching(/^payload of 'image:resize': width/) as unknown,
    });
    const outcomes = await client.enqueueMany([wrong, resize.task({ path: 'a', width: 1 })]);
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
    expect(await inspector.listPendingTasks('images')).toHaveLength(1);
  });

  test('reads what a task carries, and its data has a type of its own', async () => {
    const data: TaskData<typeof resize> = await resize.read(resize.task({ path: 'a', width: 1 }));
    expect(data).toEqual({ path: 'a', width: 1 });
    await expect(resize.read({ type: 'x', payload: Buffer.from('{') })).rejects.toMatchObject({
      code: 'ERR_TASK_PAYLOAD',
    });
  });

  test('parses what a handler is given', async () => {
    await expect(resize.parse({ path: 'a', width: 1 })).resolves.toEqual({ path: 'a', width: 1 });
    await expect(resize.parse(undefined)).rejects.toMatchObject({ code: 'ERR_TASK_PAYLOAD' });
  });
});

describe('a task type', () => {
  const anything = defineTask('a', { schema: z.unknown(), queue: 'low', headers: { a: '1', b: '1' } });

  test('lays options over its own, one by one, and headers too', () => {
    const { options } = anything.task({}, { queue: undefined, headers: { b: '2' }, maxRetry: 1 });
    expect(options).toMatchObject({ queue: 'low', maxRetry: 1, headers: { a: '1', b: '2' } });
  });

  test('may be processed at another time than its own', () => {
    const late = defineTask('a', { schema: z.unknown(), processInMs: 5 });
    expect(late.task({}, { processAt: 7 }).options).toEqual({ processAt: 7 });
  });

  test('checks what the handler will be given: a Date is a string in JSON', async () => {
    const { client } = await openBench();
    const dated: TaskType<{ at: Date }> = defineTask('a', { schema: z.object({ at: z.date() }) });
    await expect(client.enqueue(dated.task({ at: new Date() }))).rejects.toMatchObject({
      code: 'ERR_TASK_PAYLOAD',
    });
    const fromText = defineTask('a', { schema: z.object({ at: z.coerce.date<string | Date>() }) });
    await client.enqueue(fromText.task({ at: new Date(5) }));
    expect(await fromText.parse({ at: new Date(5).toISOString() })).toEqual({ at: new Date(5) });
  });

  test('has no payload, where the schema takes undefined', async () => {
    const { client } = await openBench();
    const nothing = defineTask('a', { schema: z.undefined() });
    await expect(client.enqueue(nothing.task(undefined))).resolves.toMatchObject({ type: 'a' });
  });

  test('takes no bytes that are not JSON', async () => {
    const { client } = await openBench();
    await expect(client.enqueue(anything.task(Uint8Array.of(0xff)))).rejects.toMatchObject({
      code: 'ERR_TASK_PAYLOAD',
    });
  });

  test('waits for a schema that takes its time', async () => {
    const { client } = await openBench();
    const even = z.number().refine(async (n) => Promise.resolve(n % 2 === 0), 'must be even');
    const slow = defineTask('a', { schema: even });
    await expect(slow.parse(2)).resolves.toBe(2);
    const outcomes = await client.enqueueMany([1, 2, 3, 4].map((n) => slow.task(n)));
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected', 'fulfilled']);
  });

  test.each([[undefined], [null], [5], [{}], [() => undefined], [{ '~standard': {} }]])(
    'refuses the schema %s',
    (schema) => {
      expect(() => defineTask('a', { schema: schema as StandardSchema })).toThrow(
        expect.objectContaining({ code: 'ERR_INVALID_ARG_TYPE' }),
      );
    },
  );
});
