import { EscapementError } from 'escapement';
import type {
  Broker,
  LeasedTask,
  NewTask,
  ServerState,
  TaskFailure,
  TaskMessage,
  TaskRecord,
  TaskSet,
  TaskState,
} from 'escapement/tasks';
import { expect, test } from 'vitest';
import { TASK_STATES } from '../../../src/tasks/task-state.ts';

/** A fresh broker, with nothing in it. */
export interface BrokerSetup {
  readonly broker: Broker;
  /** Precision of times: a due task may come that much later, and a duration may last that much longer. */
  readonly precisionMs: number;
  /** Whether a queue is listed before its first task is added: if that is refused, the queue is empty. */
  readonly listsFirst?: boolean;
  /** Lets time pass, and what a broker does by itself meanwhile be done. */
  readonly advance: (ms: number) => Promise<void>;
  /** Checks the integrity of the broker, if that is possible. */
  readonly check?: () => void | Promise<void>;
  readonly dispose: () => Promise<void>;
}

export type BrokerFactory = () => Promise<BrokerSetup>;

/** How a case lets time pass. */
export interface BrokerTime extends Pick<BrokerSetup, 'precisionMs' | 'advance' | 'listsFirst'> {
  /** Lets time pass, and that by which the broker may be late. */
  readonly pass: (ms: number) => Promise<void>;
}

export type BrokerCase = (broker: Broker, time: BrokerTime) => Promise<void>;

/** `test`, with a broker of its own that is disposed of in the end. */
export function caseWith(make: BrokerFactory): (name: string, run: BrokerCase) => void {
  return (name, run) => {
    test(name, async () => {
      const setup = await make();
      const { broker, advance, precisionMs, listsFirst = false } = setup;
      try {
        const pass = (ms: number): Promise<void> => advance(ms + precisionMs);
        await run(broker, { advance, precisionMs, listsFirst, pass });
        await setup.check?.();
      } finally {
        await setup.dispose();
      }
    });
  };
}

/** Long enough that no lease ends and nothing is due during a test that does not wait for it. */
export const LONG_MS = 3_600_000;

/** Long enough that no lock ends while the machine stops: Redis ends them by its own clock. */
export const MINUTE_MS = 60_000;

export const QUEUE = 'default';

/** A unique lock, in the place of a cluster where its queue is. */
export function lockKey(name: string, queue = QUEUE): string {
  return `asynq:{${queue}}:unique:${name}`;
}

/** Every byte that there is. */
export const EVERY_BYTE = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));

/** The fields of a task that a test sets; the others have the defaults of asynq. */
export type TaskParts = Partial<TaskMessage> & {
  readonly processAtMs?: number;
  readonly uniqueTtlMs?: number;
};

let made = 0;

export function newTask(parts: TaskParts = {}): NewTask {
  const { processAtMs = 0, uniqueTtlMs = parts.uniqueKey === undefined ? 0 : LONG_MS, ...message } = parts;
  return {
    processAtMs,
    uniqueTtlMs,
    message: {
      id: `task-${++made}`,
      type: 'test:task',
      queue: QUEUE,
      payload: new Uint8Array(0),
      headers: {},
      maxRetry: 25,
      retried: 0,
      lastError: '',
      lastFailedAtMs: 0,
      timeoutMs: 1_800_000,
      deadlineMs: 0,
      uniqueKey: '',
      retentionMs: 0,
      completedAtMs: 0,
      key: '',
      group: '',
      ...message,
    },
  };
}

/** The state of a server, with nothing in it that matters. */
export const SERVER: ServerState = {
  ...{ id: 's', host: 'h', pid: 7, concurrency: 1, queues: { [QUEUE]: 1 }, strictPriority: false },
  ...{ status: 'active', startedAtMs: 1, workers: [] },
};

export function failure(error = 'it failed'): TaskFailure {
  return { error, isFailure: true };
}

/** @returns the first task of the queue, which must have one. */
export async function take(broker: Broker, queue = QUEUE, leaseMs = LONG_MS): Promise<LeasedTask> {
  const [task] = await broker.dequeue(queue, 1, leaseMs);
  if (task === undefined) throw new Error(`queue '${queue}' has nothing`);
  return task;
}

/** Takes everything that is pending, and gives its ids in order. */
export async function takeAll(broker: Broker, queue = QUEUE): Promise<string[]> {
  return (await broker.dequeue(queue, 100_000, LONG_MS)).map(({ message }) => message.id);
}

/** Takes the first tasks of a group, which must have so many. */
export async function takeSet(
  broker: Broker,
  group: string,
  maxSize = 1,
  holdMs = LONG_MS,
): Promise<TaskSet> {
  const limits = { graceMs: LONG_MS, maxDelayMs: 0, maxSize };
  const { set } = await broker.takeGroup(QUEUE, group, limits, holdMs);
  if (set === undefined) throw new Error(`group '${group}' is not full`);
  return set;
}

/** Recovers the only task whose lease has ended. */
export async function recoverOne(broker: Broker, leaseMs = LONG_MS): Promise<LeasedTask> {
  const [task, ...more] = await broker.recover([QUEUE], 0, leaseMs);
  if (task === undefined || more.length > 0) throw new Error(`${more.length} more tasks were recovered`);
  return task;
}

/** Adds a task and brings it into a state, in a queue where nothing else is pending. */
export async function putInto(broker: Broker, state: TaskState, parts: TaskParts = {}): Promise<TaskMessage> {
  const laterMs = broker.clock.wallNow() + LONG_MS;
  const task = newTask({
    ...parts,
    ...(state === 'scheduled' ? { processAtMs: laterMs } : {}),
    ...(state === 'aggregating' ? { group: parts.group ?? 'group' } : {}),
    ...(state === 'completed' ? { retentionMs: LONG_MS } : {}),
  });
  await broker.enqueue(task);
  if (state === 'scheduled' || state === 'aggregating' || state === 'pending') return task.message;
  const leased = await take(broker, task.message.queue);
  expect(leased.message.id).toBe(task.message.id);
  if (state === 'retry') await broker.retry(leased, failure(), laterMs);
  if (state === 'archived') await broker.archive(leased, failure());
  if (state === 'completed') await broker.complete(leased);
  expect(await stateOf(broker, task.message)).toBe(state);
  return task.message;
}

/** One task in each state; the state is its id. */
export async function putIntoEach(broker: Broker): Promise<void> {
  for (const state of TASK_STATES) if (state !== 'pending') await putInto(broker, state, { id: state });
  await putInto(broker, 'pending', { id: 'pending' });
}

export async function stateOf(
  broker: Broker,
  { queue, id }: Pick<TaskMessage, 'queue' | 'id'>,
): Promise<TaskState | 'gone'> {
  try {
    return (await broker.task(queue, id)).state;
  } catch (error) {
    if (error instanceof EscapementError && error.code === 'ERR_TASK_NOT_FOUND') return 'gone';
    throw error;
  }
}

/** Does what a server does again and again, for a broker that does not do it by itself. */
export async function catchUp(broker: Broker, queues: readonly string[] = [QUEUE]): Promise<void> {
  await broker.forward(queues);
  await broker.reclaimSets(queues);
  await broker.deleteExpired(queues, 1_000);
}

export async function expectCode(code: string, promise: Promise<unknown>): Promise<void> {
  await expect(promise).rejects.toMatchObject({ code });
}

export function idsOf(records: readonly { readonly message: TaskMessage }[]): string[] {
  return records.map(({ message }) => message.id);
}

export async function idsIn(
  broker: Broker,
  state: TaskState,
  group?: string,
  queue = QUEUE,
): Promise<string[]> {
  return idsOf(await broker.tasks(queue, state, { page: 1, size: 10_000 }, group));
}

/** Everything that can be read of a queue: an operation that is refused must not change it. */
export async function everythingOf(broker: Broker, queue = QUEUE): Promise<unknown> {
  const { counts, groups, processedTotal, failedTotal, isPaused } = await broker.queueStats(queue);
  const records: TaskRecord[] = [];
  for (const state of ['active', 'scheduled', 'retry', 'archived', 'completed', 'aggregating'] as const) {
    records.push(...(await broker.tasks(queue, state, { page: 1, size: 1_000 })));
  }
  const pending = await idsIn(broker, 'pending', undefined, queue);
  return { counts, groups, processedTotal, failedTotal, isPaused, records, pending };
}
