import { EscapementError } from 'escapement';
import {
  defineTask,
  EmbeddedBroker,
  Scheduler,
  Task,
  type SchedulerOptions,
  type ScheduleTick,
  type StandardSchema,
  type TaskInfo,
} from 'escapement/tasks';
import { onTestFinished, test } from 'vitest';
import { SettableClock } from '../support/settable-clock.ts';
import { withMethods } from '../support/with-methods.ts';

/** A task of a type with a schema. */
export function taskValidatedBy(validate: StandardSchema<number, number>['~standard']['validate']): Task {
  const schema: StandardSchema<number, number> = { '~standard': { version: 1, vendor: 'test', validate } };
  return defineTask('t', { schema }).task(1);
}

/** A result of a validation. */
export const valid = (value: unknown): { value: number } => ({ value: value as number });

/** The error of a broker that cannot be reached. */
export const down = new EscapementError('ERR_BROKER_UNAVAILABLE', 'down');

export const START_MS = Date.parse('2026-11-02T00:00:00Z'); // a Monday
export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

/** The events of a scheduler, as lines: `12:00 enqueued ID`, in local time. */
export interface Told {
  readonly scheduler: Scheduler;
  readonly infos: TaskInfo[];
  readonly ticks: ScheduleTick[];
  readonly lines: string[];
}

export interface World {
  readonly clock: SettableClock;
  readonly broker: EmbeddedBroker;
  scheduler(options?: Partial<SchedulerOptions>): Told;
  /** Starts a scheduler with one entry, whose task, by default 't', is due at each hour. */
  startHourly(options?: Partial<SchedulerOptions>, task?: Task): Promise<Told & { readonly entryId: string }>;
  /** A broker that takes no tick until a time, in milliseconds since the start. @param reads - whether it returns the last one. */
  downUntil(ms: number, reads?: boolean): EmbeddedBroker;
}

/** Opens a world that ends with the test. */
export async function openWorld(): Promise<World> {
  const clock = new SettableClock({ nowMs: 5_000, wallMs: START_MS });
  const broker = await EmbeddedBroker.open({ clock });
  const schedulers: Scheduler[] = [];
  onTestFinished(async () => {
    for (const scheduler of schedulers) await scheduler.shutdown();
    await broker.close();
  });
  const open = (options: Partial<SchedulerOptions> = {}): Told => {
    const scheduler = new Scheduler({ broker, ...options });
    schedulers.push(scheduler);
    return watch(scheduler, clock);
  };
  return {
    clock,
    broker,
    scheduler: open,
    async startHourly(options, task = new Task('t')) {
      const told = open(options);
      const entryId = told.scheduler.register('@hourly', task);
      await told.scheduler.start();
      return { ...told, entryId };
    },
    downUntil(ms, reads = true) {
      const guarded = <R>(call: () => Promise<R>): Promise<R> =>
        clock.wallNow() < START_MS + ms ? Promise.reject(down) : call();
      return withMethods(broker, {
        enqueueTick: (task, tick) => guarded(() => broker.enqueueTick(task, tick)),
        ...(reads ? {} : { lastTickMs: (queue, key) => guarded(() => broker.lastTickMs(queue, key)) }),
      });
    },
  };
}

/** A test in a world of its own. */
export const it = test.extend('world', () => openWorld());

function watch(scheduler: Scheduler, clock: SettableClock): Told {
  const told: Told = { scheduler, infos: [], ticks: [], lines: [] };
  const line = (what: string, { at }: ScheduleTick): void => {
    told.lines.push(`${timeOf(clock.wallNow())} ${what} ${timeOf(at.getTime())}`);
  };
  scheduler.on('enqueued', (info, tick) => {
    told.infos.push(info);
    told.ticks.push(tick);
    line('enqueued', tick);
  });
  scheduler.on('enqueuedElsewhere', (tick) => {
    line('elsewhere', tick);
  });
  scheduler.on('enqueueFailed', (_error, tick) => {
    line('failed', tick);
  });
  return told;
}

function timeOf(ms: number): string {
  return new Date(ms)
    .toISOString()
    .slice('2026-11-02T'.length, -'Z'.length)
    .replace(/(:00)?\.000$/, '');
}
