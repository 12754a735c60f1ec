import type { IncomingMessage } from 'node:http';
import { type } from 'arktype';
import * as v from 'valibot';
import { expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import {
  Client,
  defineTask,
  EmbeddedBroker,
  Inspector,
  Task,
  type Broker,
  type BrokerClientOptions,
  type ClientMiddleware,
  type HttpClientOptions,
  type QueueLimits,
  type TaskInfo,
  type TaskOptions,
  type TaskState,
  type TaskType,
} from 'escapement/tasks';
import { tasksHandler, type TasksHandler } from 'escapement/tasks/http';

test('a task has the type of its payload', () => {
  expectTypeOf(new Task('a', { userId: 42 })).toEqualTypeOf<Task<{ userId: number }>>();
  expectTypeOf(new Task('a', { userId: 42 }).json()).toEqualTypeOf<{ userId: number }>();
  expectTypeOf(new Task('a').json<string>()).toEqualTypeOf<string>();
  expectTypeOf(new Task('a').payload).toEqualTypeOf<Uint8Array>();
  expectTypeOf<Task<number>>().toExtend<Task>();
  // @ts-expect-error -- an option that does not exist
  expectTypeOf(new Task('a', 1, { maxRetries: 1 })).toExtend<Task>();
});

test('a task type has the types of its schema: what is enqueued, and what the handler is given', () => {
  const coerced = z.object({ at: z.coerce.number<string>(), by: z.string().default('me') });
  const ofZod = defineTask('a', { schema: coerced });
  expectTypeOf(ofZod).toEqualTypeOf<
    TaskType<{ at: string; by?: string | undefined }, { at: number; by: string }>
  >();
  expectTypeOf(ofZod.task({ at: '5' })).toEqualTypeOf<Task<{ at: string; by?: string | undefined }>>();
  expectTypeOf<(typeof ofZod)['parse']>().returns.resolves.toEqualTypeOf<{ at: number; by: string }>();

  const ofValibot = defineTask('a', { schema: v.object({ path: v.string() }), maxRetry: 3 });
  expectTypeOf(ofValibot).toEqualTypeOf<TaskType<{ path: string }, { path: string }>>();

  const ofArktype = defineTask('a', { schema: type({ width: 'number' }) });
  expectTypeOf(ofArktype).toEqualTypeOf<TaskType<{ width: number }, { width: number }>>();
});

test('a payload of another type is refused', () => {
  const resize = defineTask('a', { schema: z.object({ width: z.number() }) });
  resize.task({ width: 1 }, { queue: 'low' });
  // @ts-expect-error -- a string where a number is needed
  resize.task({ width: '1' });
  // @ts-expect-error -- no payload where one is needed
  resize.task();
  // @ts-expect-error -- an option that does not exist
  defineTask('a', { schema: z.object({}), retries: 1 });
  // @ts-expect-error -- no schema
  defineTask('a', {});
});

test('a client enqueues tasks of any payload', async () => {
  const broker = await EmbeddedBroker.open();
  expectTypeOf(broker).toExtend<Broker>();
  const client = new Client({ broker });
  expectTypeOf(
    client.enqueue(new Task('a', 1), { processAt: new Date() }),
  ).resolves.toEqualTypeOf<TaskInfo>();
  expectTypeOf(
    client.enqueueMany([new Task('a', 1), { task: new Task('b'), options: {} }, { task: new Task('c') }]),
  ).resolves.toEqualTypeOf<PromiseSettledResult<TaskInfo>[]>();
  client.use(async (request, next) => {
    expectTypeOf(request.task).toEqualTypeOf<Task>();
    expectTypeOf(request.options).toEqualTypeOf<TaskOptions>();
    return next(request);
  });
  client.on('enqueued', (info) => {
    expectTypeOf(info).toEqualTypeOf<TaskInfo>();
  });
  expectTypeOf<ClientMiddleware>().returns.resolves.toEqualTypeOf<TaskInfo>();
});

test('a client has a broker or a URL', async () => {
  const signal = AbortSignal.abort();
  new Client({ url: 'http://x', headers: { authorization: 'a' }, timeoutMs: 1, maxRetries: 0, signal });
  new Client({ url: new URL('http://x'), headers: () => Promise.resolve({ authorization: 'a' }) });
  // @ts-expect-error -- neither
  new Client({});
  // @ts-expect-error -- options of a URL
  new Client({ broker: await EmbeddedBroker.open(), timeout: 1 });
  expectTypeOf<ConstructorParameters<typeof Client>[0]>().toEqualTypeOf<
    BrokerClientOptions | HttpClientOptions
  >();
});

test('an inspector returns infos, with dates and values of JSON', async () => {
  const inspector = new Inspector({ broker: await EmbeddedBroker.open() });
  expectTypeOf(inspector.listPendingTasks('a', { page: 1, pageSize: 5 })).resolves.toEqualTypeOf<
    readonly TaskInfo[]
  >();
  const info = await inspector.getTaskInfo('a', 'b');
  expectTypeOf(info.state).toEqualTypeOf<TaskState>();
  expectTypeOf(info.completedAt).toEqualTypeOf<Date | undefined>();
  expectTypeOf(info.json()).toBeUnknown();
  expectTypeOf(info.json<{ to: string }>()).toEqualTypeOf<{ to: string }>();
  expectTypeOf(info.resultJson()).toBeUnknown();
  expectTypeOf(info.resultJson<{ sum: number }>()).toEqualTypeOf<{ sum: number } | undefined>();
  expectTypeOf(inspector.waitFor({ id: 'a', queue: 'b' })).resolves.toEqualTypeOf<TaskInfo>();
  expectTypeOf(inspector.waitFor(info, { signal: AbortSignal.abort() })).resolves.toEqualTypeOf<TaskInfo>();
  expectTypeOf(inspector.waitFor('a', { queue: 'b' })).resolves.toEqualTypeOf<TaskInfo>();
  expectTypeOf(inspector.cancelProcessing('a', { outcome: 'archive' })).resolves.toEqualTypeOf<boolean>();
  // @ts-expect-error -- another outcome
  await inspector.cancelProcessing('a', { outcome: 'forget' });
  // @ts-expect-error -- a group is needed
  await inspector.listAggregatingTasks('a');
});

test('tasksHandler needs a broker, and authorize may take the request of a framework', async () => {
  const broker = await EmbeddedBroker.open();
  expectTypeOf(tasksHandler({ broker })).toEqualTypeOf<TasksHandler>();
  tasksHandler({
    broker,
    authorize: ({ headers }) => headers.authorization === 'a' || { challenge: 'Basic' },
  });
  tasksHandler({ broker, authorize: ({ user }: IncomingMessage & { user?: string }) => user === 'a' });
  // @ts-expect-error -- a broker is needed
  tasksHandler({});
});

test('limits of a queue are those of it and of each key, and a rate has a time', () => {
  expectTypeOf<Inspector['limits']>().returns.resolves.toEqualTypeOf<QueueLimits | undefined>();
  expectTypeOf<Inspector['setLimits']>().parameter(1).toEqualTypeOf<QueueLimits | undefined>();
  expectTypeOf({ perKey: { rate: { tasks: 1, perMs: 1_000 } } }).toExtend<QueueLimits>();
  expectTypeOf({ rate: { tasks: 1 } }).not.toExtend<QueueLimits>();
  expectTypeOf<keyof NonNullable<QueueLimits['perKey']>>().toEqualTypeOf<'concurrency' | 'rate'>();
  expectTypeOf<TaskOptions['priority']>().toEqualTypeOf<'normal' | 'next' | undefined>();
});
