import { describe, expect } from 'vitest';
import { QueueKeys } from '../../../src/tasks/broker/redis/keys.ts';
import { decodeTaskMessage, encodeTaskMessage } from '../../../src/tasks/wire/message-codec.ts';
import { Task, type TaskOptions } from '../../../src/tasks.ts';
import { describeEachGo, it } from './support/describe-each-go.ts';
import { GO_STATES, GO_ZERO_TIME, type GoNewTask, type GoTaskInfo } from './support/go-types.ts';

const HOUR_MS = 3_600_000;
const SECOND_NS = 1_000_000_000;
const later = Date.UTC(2100, 0, 1);
const laterText = '2100-01-01T00:00:00Z';

/** An option as we take it, what Go shows of a task that has it, and what we do. */
interface OptionCase {
  readonly option: string;
  readonly node: TaskOptions & { deadline?: number; processAt?: number };
  readonly inGo: Partial<Record<keyof GoTaskInfo, unknown>>;
  readonly inNode: object;
}

/** The same options as the driver takes them. */
function goOptions({ deadline, processAt, ...same }: OptionCase['node']): Partial<GoNewTask> {
  return {
    ...(same as Partial<GoNewTask>),
    ...(deadline !== undefined && { deadlineMs: deadline }),
    ...(processAt !== undefined && { processAtMs: processAt }),
  };
}

const cases: readonly OptionCase[] = [
  {
    ...{ option: 'none', node: {} },
    inGo: {
      ...{ State: 2, MaxRetry: 25, Timeout: 1_800 * SECOND_NS, Deadline: GO_ZERO_TIME },
      ...{ Retention: 0, Group: '' },
    },
    inNode: { state: 'pending', maxRetry: 25, timeoutMs: 1_800_000, deadline: undefined, retentionMs: 0 },
  },
  {
    ...{ option: 'maxRetry', node: { maxRetry: 0 } },
    ...{ inGo: { MaxRetry: 0 }, inNode: { maxRetry: 0 } },
  },
  {
    ...{ option: 'timeout', node: { timeoutMs: 90_000 } },
    ...{ inGo: { Timeout: 90 * SECOND_NS }, inNode: { timeoutMs: 90_000 } },
  },
  {
    ...{ option: 'deadline', node: { deadline: later } },
    ...{ inGo: { Timeout: 0, Deadline: laterText }, inNode: { timeoutMs: 0, deadline: new Date(later) } },
  },
  {
    ...{ option: 'timeout and deadline', node: { timeoutMs: 90_000, deadline: later } },
    inGo: { Timeout: 90 * SECOND_NS, Deadline: laterText },
    inNode: { timeoutMs: 90_000, deadline: new Date(later) },
  },
  {
    ...{ option: 'retention', node: { retentionMs: HOUR_MS } },
    ...{ inGo: { Retention: 3_600 * SECOND_NS }, inNode: { retentionMs: HOUR_MS } },
  },
  {
    ...{ option: 'process at', node: { processAt: later } },
    inGo: { State: 3, NextProcessAt: laterText },
    inNode: { state: 'scheduled', nextProcessAt: new Date(later) },
  },
  {
    ...{ option: 'process at a time that is past', node: { processAt: 1_000 } },
    ...{ inGo: { State: 2 }, inNode: { state: 'pending' } },
  },
  {
    ...{ option: 'process in', node: { processInMs: HOUR_MS } },
    ...{ inGo: { State: 3 }, inNode: { state: 'scheduled' } },
  },
  {
    ...{ option: 'group', node: { group: 'g' } },
    inGo: { State: 7, Group: 'g', NextProcessAt: GO_ZERO_TIME },
    inNode: { state: 'aggregating', group: 'g', nextProcessAt: undefined },
  },
  {
    ...{ option: 'unique', node: { uniqueTtlMs: HOUR_MS } },
    ...{ inGo: { State: 2 }, inNode: { state: 'pending' } },
  },
  {
    option: 'all of a pending one',
    node: {
      ...{ taskId: 'all', maxRetry: 3, timeoutMs: 5_000, deadline: later, uniqueTtlMs: HOUR_MS },
      retentionMs: 1_000,
    },
    inGo: { ID: 'all', MaxRetry: 3, Timeout: 5 * SECOND_NS, Deadline: laterText, Retention: SECOND_NS },
    inNode: { id: 'all', maxRetry: 3, timeoutMs: 5_000, deadline: new Date(later), retentionMs: 1_000 },
  },
];

describe('every option', () => {
  describeEachGo((world, version) => {
    it.each(cases)('what we write is the same in Go: $option', async ({ node, inGo }) => {
      const queue = world().newQueue();
      const { id } = await world().client.enqueue(new Task('email:send', { user_id: 42 }, { queue }), node);
      const shown = await world().go.task(queue, id);
      expect(shown).toMatchObject({
        ...{ ID: id, Queue: queue, Type: 'email:send', Retried: 0, LastErr: '', LastFailedAt: GO_ZERO_TIME },
        Payload: Buffer.from('{"user_id":42}').toString('base64'),
        ...inGo,
      });
    });

    it.each(cases)('what Go writes is the same with us, to the byte: $option', async ({ node, inNode }) => {
      const queue = world().newQueue();
      const { ID: id } = await world().go.enqueue({
        type: 'email:send',
        payload: '{"user_id":42}',
        queue,
        ...goOptions(node),
      });
      const shown = await world().inspector.getTaskInfo(queue, id);
      expect(shown).toMatchObject({
        ...{ id, queue, type: 'email:send', retried: 0, lastError: '', lastFailedAt: undefined, headers: {} },
        ...inNode,
      });
      expect(Buffer.from(shown.payload).toString()).toBe('{"user_id":42}');
      const bytes = await world().redis.hgetBuffer(new QueueKeys(queue).task(id), 'msg');
      expect(Buffer.from(encodeTaskMessage(decodeTaskMessage(bytes ?? Buffer.alloc(0))))).toEqual(bytes);
    });

    it.each(cases)('both write the same keys, of the same kinds: $option', async ({ node }) => {
      const [ours, theirs] = [world().newQueue(), world().newQueue()];
      const task = new Task('t', 'p', { queue: ours });
      await world().client.enqueue(task, { ...node, taskId: 'one' });
      await world().go.enqueue({
        type: 't',
        payload: '"p"',
        queue: theirs,
        ...goOptions(node),
        taskId: 'one',
      });
      const [written, expected] = [await shapeOf(ours), await shapeOf(theirs)];
      expect(written).toEqual(expected);
    });

    it('a time between two seconds is never earlier in Go', async ({ queue }) => {
      const { id } = await world().client.enqueue(new Task('t', null, { queue }), {
        ...{ processAt: later + 1, deadline: later + 1, timeoutMs: 1, retentionMs: 1 },
      });
      expect(await world().go.task(queue, id)).toMatchObject({
        ...{ NextProcessAt: '2100-01-01T00:00:01Z', Deadline: '2100-01-01T00:00:01Z' },
        ...{ Timeout: SECOND_NS, Retention: SECOND_NS },
      });
    });

    it('a task without a timeout has none in Go, which logs no error for it', async ({ queue }) => {
      const { id } = await world().client.enqueue(new Task('succeed', null, { queue }), { timeoutMs: 0 });
      await world().serveInGo(queue, { logsEverything: true });
      const { deadline } = await world().go.heard('started', id);
      expect(Date.parse(String(deadline)) - Date.now()).toBeGreaterThan(50 * 365 * 24 * HOUR_MS);
      await world().untilGone(queue, id);
      expect(world().go.events.filter(({ level }) => level === 'error' || level === 'warn')).toEqual([]);
    });

    it('a payload of any bytes, and an empty one, come through both ways', async ({ queue }) => {
      const bytes = Buffer.from([0, 0xff, 0xfe, 0x80, 0x0a]);
      const { id } = await world().client.enqueue(new Task('t', bytes, { queue }));
      expect((await world().go.task(queue, id)).Payload).toBe(bytes.toString('base64'));
      const { ID: empty } = await world().go.enqueue({ type: 't', payload: null, queue });
      expect((await world().inspector.getTaskInfo(queue, empty)).payload).toHaveLength(0);
    });

    it.skipIf(version === '0.25.1')('headers come through both ways', async () => {
      const queue = world().newQueue();
      const headers = { traceparent: '00-1-2-01', ä: '', b: 'ß' };
      const { id } = await world().client.enqueue(new Task('succeed', null, { queue, headers }));
      expect((await world().go.task(queue, id)).Headers).toEqual(headers);
      const { ID: theirs } = await world().go.enqueue({ type: 'succeed', headers, queue });
      expect((await world().inspector.getTaskInfo(queue, theirs)).headers).toEqual(headers);
      const { heard, server } = await world().serveInNode(queue);
      expect((await heard('started', theirs)).headers).toEqual(headers);
      await server.shutdown();
      const again = await world().client.enqueue(new Task('succeed', null, { queue, headers }));
      await world().serveInGo(queue);
      expect((await world().go.heard('started', again.id)).headers).toEqual(headers);
    });

    it.skipIf(version !== '0.25.1')(
      'headers do no harm to a version of Go without headers, and are lost when it retries',
      async () => {
        const queue = world().newQueue();
        const headers = { a: 'b' };
        const { id } = await world().client.enqueue(new Task('fail', null, { queue, headers }));
        expect(GO_STATES[(await world().go.task(queue, id)).State]).toBe('pending');
        await world().serveInGo(queue, { retryDelayMs: HOUR_MS });
        await world().untilNodeSays(queue, id, 'retry');
        expect((await world().inspector.getTaskInfo(queue, id)).headers).toEqual({});
      },
    );

    /** What a queue has in Redis: keys with their types and the fields of tasks, but for random ids. */
    async function shapeOf(queue: string): Promise<Record<string, unknown>> {
      const shape: Record<string, unknown> = {};
      for (const key of (await world().redis.keys(`asynq:{${queue}}:*`)).sort()) {
        const name = key.replace(queue, 'QUEUE');
        const type = await world().redis.type(key);
        shape[name] = type === 'hash' ? (await world().redis.hkeys(key)).sort() : type;
      }
      return shape;
    }
  });
});
