import { ManualClock, type Clock, type ClockTimeout } from 'escapement';
import {
  EmbeddedBroker,
  Scheduler,
  type Broker,
  type SchedulerOptions,
  type ScheduleTick,
  type TaskInfo,
} from 'escapement/tasks';

export const START_MS = Date.parse('2026-11-02T00:00:00Z'); // a Monday
export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

/** Virtual time whose wall clock can be set, as by hand. */
export class SettableClock implements Clock {
  readonly manual = new ManualClock({ nowMs: 5_000, wallMs: START_MS });
  #shiftMs = 0;

  now(): number {
    return this.manual.now();
  }

  wallNow(): number {
    return this.manual.wallNow() + this.#shiftMs;
  }

  setTimeout(callback: () => void, delayMs: number): ClockTimeout {
    return this.manual.setTimeout(callback, delayMs);
  }

  advance(ms: number): Promise<void> {
    return this.manual.advanceAsync(ms);
  }

  /** The wall clock jumps; nothing else does. */
  shiftWall(byMs: number): void {
    this.#shiftMs += byMs;
  }
}

/** A broker, some of whose methods are others. */
export function withMethods(broker: Broker, methods: Partial<Broker>): Broker {
  return new Proxy(broker, {
    get(target, name) {
      const own: unknown = Reflect.get(methods, name);
      if (own !== undefined) return own;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

/** The events of a scheduler, as lines: `12:00 enqueued ID`, in local time. */
export interface Told {
  readonly scheduler: Scheduler;
  readonly infos: TaskInfo[];
  readonly ticks: ScheduleTick[];
  readonly lines: string[];
}

export interface World extends AsyncDisposable {
  readonly clock: SettableClock;
  readonly broker: EmbeddedBroker;
  scheduler(options?: Partial<SchedulerOptions>): Told;
}

export async function openWorld(): Promise<World> {
  const clock = new SettableClock();
  const broker = await EmbeddedBroker.open({ clock });
  const schedulers: Scheduler[] = [];
  return {
    clock,
    broker,
    scheduler(options = {}) {
      const scheduler = new Scheduler({ broker, ...options });
      schedulers.push(scheduler);
      return watch(scheduler, clock);
    },
    async [Symbol.asyncDispose]() {
      for (const scheduler of schedulers) await scheduler.shutdown();
      await broker.close();
    },
  };
}

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
