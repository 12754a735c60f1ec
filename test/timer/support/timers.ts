import { ManualClock, SystemTimer, type SystemTimerOptions } from 'escapement';
import type { TimerTable } from '../../../src/timer/timer-table.ts';
import type { TimerTaskList } from '../../../src/timer/timer-task-list.ts';
import { HandClock } from './hand-clock.ts';
import { Journal } from './tasks.ts';

type Options = Omit<SystemTimerOptions, 'clock'> & { readonly nowMs?: number };

interface Opened<C> {
  readonly clock: C;
  readonly timer: SystemTimer;
  readonly journal: Journal;
}

/** Returns a timer on virtual time, which wakes it by itself when a test advances it. */
export function manualTimer({ nowMs = 0, ...options }: Options = {}): Opened<ManualClock> {
  return open(new ManualClock({ nowMs }), options);
}

/** Returns a timer whose wake-ups are delivered when the test fires them. */
export function handTimer({ nowMs = 0, ...options }: Options = {}): Opened<HandClock> {
  return open(new HandClock(nowMs), options);
}

function open<C extends ManualClock | HandClock>(clock: C, options: SystemTimerOptions): Opened<C> {
  return { clock, timer: new SystemTimer({ clock, ...options }), journal: new Journal() };
}

/** The slots of the entries of a list, in their order. */
export function slotsOf(table: TimerTable, list: TimerTaskList): number[] {
  const slots: number[] = [];
  for (let slot = list.first; slot !== list.sentinel; slot = table.next(slot)) slots.push(slot);
  return slots;
}
