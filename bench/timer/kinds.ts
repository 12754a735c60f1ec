/** The kinds of timers, each as the request of its user: an object that holds its timeout or id, or is the entry itself. */
import { performance } from 'node:perf_hooks';
import { SystemTimer, TimerTask, type TimerId } from 'escapement';
import * as dropIn from 'escapement/timers';
import { TimerWheel, type TimerHandle } from 'timer-wheel';
import { activeTimeouts } from '../lib/machine.ts';
import { baseline, instanceFor, ours, rival, type Contestant } from '../lib/part.ts';
import type { DelaySequence } from '../lib/random.ts';
import type { Tally } from '../lib/work.ts';
import { HeapEntry, HeapTimer } from './heap-timer.ts';
import type { Request, Ring, TimerKind } from './ring.ts';

export type OpenRing = (size: number, delays: DelaySequence) => Ring;

/** After every delay, and inside the 32 bits that timer-wheel shifts: `advance` to it returns all that is pending. */
const PAST_ALL_MS = 2 ** 31;

let listener: Pick<Tally, 'complete'>;

/** Sets the object that is notified when a request of any kind expires. */
export function reportTo(next: typeof listener): void {
  listener = next;
}

export function expire(request: { readonly id: number }): void {
  listener.complete(request.id);
}

/** @returns a function that opens rings of the kind, in which no request may expire. */
async function openerOf<Timers, R extends Request<Timers>>(
  name: string,
  kind: TimerKind<Timers, R>,
): Promise<OpenRing> {
  const url = new URL('./ring.ts', import.meta.url);
  const { openRing } = (await instanceFor(url, name)) as typeof import('./ring.ts');
  return (size, delays) => {
    let expired = 0;
    reportTo({
      complete: () => {
        expired++;
      },
    });
    return openRing(kind, size, delays, () => expired);
  };
}

/** The request is `setTimeout`'s argument: cheaper than a closure a request. */
class HostRequest {
  declare readonly id: number;
  declare readonly timeout: NodeJS.Timeout;

  constructor(id: number, _timers: unknown, delayMs: number) {
    this.id = id;
    this.timeout = setTimeout(expire, delayMs, this);
  }

  cancel(): boolean {
    clearTimeout(this.timeout);
    return true;
  }
}

function cancelAll(_: unknown, requests: readonly ({ cancel(): boolean } | undefined)[]): void {
  for (const request of requests) request?.cancel();
}

export const HOST: TimerKind<{ readonly foreign: number }, HostRequest> = {
  Request: HostRequest,
  open: () => ({ foreign: activeTimeouts() }),
  pending: ({ foreign }) => activeTimeouts() - foreign,
  close: cancelAll,
};

class HeapRequest extends HeapEntry {
  declare readonly id: number;

  constructor(id: number, timer: HeapTimer, delayMs: number) {
    super();
    this.id = id;
    timer.add(this, delayMs);
  }

  cancel(timer: HeapTimer): boolean {
    return timer.cancel(this);
  }

  expire(): void {
    listener.complete(this.id);
  }
}

export const HEAP: TimerKind<HeapTimer, HeapRequest> = {
  Request: HeapRequest,
  open: () => new HeapTimer(() => performance.now(), true),
  pending: ({ size }) => size,
  close: (timer) => timer.close(),
};

class WheelRequest {
  declare readonly id: number;
  declare readonly handle: TimerHandle;

  constructor(id: number, wheel: TimerWheel<WheelRequest>, delayMs: number) {
    this.id = id;
    this.handle = wheel.schedule(this, delayMs);
  }

  cancel(): boolean {
    this.handle.remove();
    return true;
  }
}

export type RequestWheel = TimerWheel<WheelRequest>;

/** timer-wheel counts nothing, so `pending` takes everything out. */
export const WHEEL: TimerKind<RequestWheel, WheelRequest> = {
  Request: WheelRequest,
  open: () => new TimerWheel<WheelRequest>(),
  pending: (wheel) => new Set(wheel.advance(PAST_ALL_MS)).size,
  close: () => undefined,
};

class TaskRequest extends TimerTask {
  declare readonly id: number;

  constructor(id: number, timer: SystemTimer, delayMs: number) {
    super(delayMs);
    this.id = id;
    timer.add(this);
  }

  run(): void {
    listener.complete(this.id);
  }
}

const SYSTEM_TIMER = {
  open: () => new SystemTimer(),
  pending: ({ size }: SystemTimer) => size,
  close: (timer: SystemTimer) => {
    timer.close();
  },
};

export const TASK: TimerKind<SystemTimer, TaskRequest> = { ...SYSTEM_TIMER, Request: TaskRequest };

/** The same with a deadline, so that the timer reads no clock. */
class DeadlineTaskRequest extends TimerTask {
  declare readonly id: number;

  constructor(id: number, timer: SystemTimer, delayMs: number, nowMs: number) {
    super(delayMs);
    this.id = id;
    timer.add(this, nowMs + delayMs);
  }

  run(): void {
    listener.complete(this.id);
  }
}

class ScheduledRequest {
  declare readonly id: number;
  declare readonly timerId: TimerId;

  constructor(id: number, timer: SystemTimer, delayMs: number) {
    this.id = id;
    this.timerId = timer.schedule(delayMs, expire, this);
  }

  cancel(timer: SystemTimer): boolean {
    return timer.cancel(this.timerId);
  }
}

export const SCHEDULE: TimerKind<SystemTimer, ScheduledRequest> = {
  ...SYSTEM_TIMER,
  Request: ScheduledRequest,
};

class DeadlineRequest {
  declare readonly id: number;
  declare readonly timerId: TimerId;

  constructor(id: number, timer: SystemTimer, delayMs: number, nowMs: number) {
    this.id = id;
    this.timerId = timer.scheduleAt(nowMs + delayMs, expire, this);
  }

  cancel(timer: SystemTimer): boolean {
    return timer.cancel(this.timerId);
  }
}

/** Our replacement of the host's functions. */
class DropInRequest {
  declare readonly id: number;
  declare readonly timeout: dropIn.Timeout;

  constructor(id: number, _timers: unknown, delayMs: number) {
    this.id = id;
    this.timeout = dropIn.setTimeout(expire, delayMs, this);
  }

  cancel(): boolean {
    dropIn.clearTimeout(this.timeout);
    return true;
  }
}

export const DROP_IN_KIND: TimerKind<undefined, DropInRequest> = {
  Request: DropInRequest,
  open: () => undefined,
  pending: (_, ring, cancelled) => [cancelled, ...ring].filter(isPending).length,
  close: cancelAll,
};

/** The functions do not return the number of timeouts; one that was cleared has no callback. */
function isPending(request: DropInRequest | undefined): boolean {
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- the only property that shows it
  return typeof request?.timeout._onTimeout === 'function';
}

const hostTimers = baseline('setTimeout', await openerOf('host', HOST));

export const TIMERS: readonly Contestant<OpenRing>[] = [
  hostTimers,
  rival('binary heap', await openerOf('heap', HEAP)),
  rival('timer-wheel', await openerOf('wheel', WHEEL)),
  ours('ours: TimerTask', await openerOf('task', TASK)),
  ours('ours: schedule', await openerOf('schedule', SCHEDULE)),
  ours(
    'ours: TimerTask, deadline',
    await openerOf('deadline-task', { ...SYSTEM_TIMER, Request: DeadlineTaskRequest }),
  ),
  ours('ours: scheduleAt', await openerOf('deadline', { ...SYSTEM_TIMER, Request: DeadlineRequest })),
];

export const DROP_IN: readonly Contestant<OpenRing>[] = [
  hostTimers,
  ours('ours: setTimeout', await openerOf('drop-in', DROP_IN_KIND)),
];
