import { Inspector, type Logger, type TaskRecoveredEvent } from 'escapement/tasks';
import { describe, expect, vi } from 'vitest';
import { raise } from '../support/bench.ts';
import { failing, Held, it, type World } from './support/world.ts';

describe('the log', () => {
  /** Logs each message with the state of the task at that time. */
  function watch(world: World, id: string): { logger: Logger; lines: string[] } {
    const lines: string[] = [];
    const log = (_fields: object, message: string): void => {
      void world.state({ queue: 'default', id }).then((state) => lines.push(`${message} (${state})`));
    };
    return { logger: { debug: log, info: log, warn: log, error: log }, lines };
  }

  it('an archived task is logged when the broker has archived it', async ({ world }) => {
    const { broker } = failing(world, 'archive', 2);
    const { logger, lines } = watch(world, 'a');
    await world.start(raise(new Error('boom')), { broker, logger });
    await world.enqueue('job', undefined, { maxRetry: 0, taskId: 'a' });
    await world.advance(3_000);
    expect(lines).toEqual(['task not archived (active)', 'task archived (archived)']);
  });

  it('a failed task is logged with its error when it waits for its retry', async ({ world }) => {
    const warn = vi.fn();
    const logger = { debug: vi.fn(), info: vi.fn(), warn, error: vi.fn() };
    const error = new Error('the mail server is busy');
    await world.start(() => Promise.reject(error), { logger, retryDelayMs: () => 60_000 });
    await world.enqueue('job', undefined, { taskId: 'a' });
    await world.advance(100);
    const fields = { taskId: 'a', queue: 'default', type: 'job', err: error };
    expect(warn.mock.calls).toEqual([[fields, 'task failed, it is retried']]);
  });

  it.for<['archive' | 'retry', number, string, string]>([
    ['retry', 3, 'task recovered: its lease was lost', 'retry'],
    [
      ...(['archive', 0] as const),
      'task archived: too many of its runs ended with their process, or lost their lease (maxRecoveries)',
      'archived',
    ],
  ])(
    'a task that has lost its worker is logged, and its event emitted, after %s',
    async ([method, maxRecoveries, message, state], { world }) => {
      const { broker } = failing(world, method, 1);
      const { logger, lines } = watch(world, 'a');
      await world.enqueue('job', undefined, { taskId: 'a' });
      await world.broker.dequeue('default', 1, 1_000);
      const recovered: TaskRecoveredEvent[] = [];
      const options = { broker, logger, maxRecoveries, retryDelayMs: () => 60_000 };
      (await world.start(() => undefined, options)).on('recovered', (event) => recovered.push(event));
      await world.advance(1_000);
      expect([lines, recovered]).toEqual([['task not recovered (active)'], []]);
      await world.advance(30_000);
      expect(lines.slice(1)).toEqual([`${message} (${state})`]);
      const { nextProcessAt } = await new Inspector({ broker: world.broker }).getTaskInfo('default', 'a');
      const retryAt = method === 'retry' ? nextProcessAt : undefined;
      const run = { taskId: 'a', queue: 'default', type: 'job', retryCount: 0, maxRetry: 25 };
      expect(recovered).toEqual([{ ...run, task: recovered[0]?.task, recoveries: 1, retryAt }]);
      expect(recovered[0]?.task.type).toBe('job');
    },
  );
});

it('a logger that throws does not stop the server', async ({ world }) => {
  const shout = raise(new Error('disk full'));
  const held = new Held();
  await world.start(held.handler, { logger: { debug: shout, info: shout, warn: shout, error: shout } });
  const info = await world.enqueue('job', undefined, { maxRetry: 0 });
  held.run().reject(new Error('boom'));
  await world.settle();
  expect(await world.state(info)).toBe('archived');
});
