import { expectTypeOf, test } from 'vitest';
import {
  parseCronSpec,
  PeriodicTaskManager,
  Scheduler,
  Task,
  type Broker,
  type PeriodicTaskConfig,
  type SchedulerEntryInfo,
  type ScheduleTick,
  type SyncChange,
  type TaskInfo,
} from 'escapement/tasks';

declare const broker: Broker;

test('a scheduler takes a task of any payload, and its events are typed', () => {
  const scheduler = new Scheduler({
    broker,
    backfill: { maxTicks: 3 },
    postEnqueue: (info, error) => {
      expectTypeOf(info).toEqualTypeOf<TaskInfo | undefined>();
      expectTypeOf(error).toBeUnknown();
    },
  });
  expectTypeOf(scheduler.register('@daily', new Task('a', { n: 1 }), { id: 'a', queue: 'q' })).toBeString();
  expectTypeOf(scheduler.entries()).toEqualTypeOf<readonly SchedulerEntryInfo[]>();
  scheduler.on('enqueued', (info, tick) => {
    expectTypeOf(info).toEqualTypeOf<TaskInfo>();
    expectTypeOf(tick).toEqualTypeOf<ScheduleTick>();
  });
  // @ts-expect-error -- an event that does not exist
  scheduler.on('ticked', () => undefined);
  // @ts-expect-error -- an option that does not exist
  scheduler.register('@daily', new Task('a'), { backfil: true });
});

test('a provider may take its time, or not', () => {
  const configs: readonly PeriodicTaskConfig[] = [{ cronSpec: '@daily', task: new Task('a', 1) }];
  new PeriodicTaskManager({ broker, provider: { getConfigs: () => configs } });
  const manager = new PeriodicTaskManager({
    broker,
    provider: { getConfigs: () => Promise.resolve(configs) },
  });
  expectTypeOf(manager.sync()).resolves.toEqualTypeOf<SyncChange>();
});

test('a spec that never comes has no next tick', () => {
  expectTypeOf(parseCronSpec('@daily').next(0)).toEqualTypeOf<number | undefined>();
});
