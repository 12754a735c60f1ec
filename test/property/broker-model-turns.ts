import type { KeyStats, LimitKind, QueueLimits, Rate } from 'escapement/tasks';
import type { TaskState } from '../../src/tasks/task-state.ts';

/*
 * Keys and limits in the model of a broker: whose turn it is, and what is held back. Everything is counted anew every time, except what
 * cannot be: the order of the turns, and the tokens that were taken.
 */

/** A task, as far as it matters here. */
interface Counted {
  readonly message: { readonly key: string };
  readonly state: TaskState;
}

export interface ModelTurns {
  readonly tasks: readonly Counted[];
  limits: QueueLimits | undefined;
  /** Keys with pending tasks that no limit of their own holds back. The first one is the next. Those that came at once have the same number. */
  ring: { readonly key: string; readonly cameAs: number }[];
  /** When the bucket of each key is full, by `key KEY`; that of the queue is `queue`. */
  readonly fullAtMs: Map<string, number>;
  changes: number;
}

/** Brings the ring up to date. What comes to it comes to its end. */
export function arrange(turns: ModelTurns, nowMs: number): void {
  const may = keysOf(turns).filter(
    (key) => countOf(turns, key, 'pending') > 0 && keyHeldBy(turns, key, nowMs) === undefined,
  );
  turns.ring = turns.ring.filter(({ key }) => may.includes(key));
  turns.changes++;
  for (const key of may)
    if (!turns.ring.some((one) => one.key === key)) turns.ring.push({ key, cameAs: turns.changes });
}

/** Of keys that came at once, the order is not promised: it becomes that of `keys`. */
export function arrangeAs({ ring }: ModelTurns, keys: readonly string[]): void {
  ring.sort((a, b) => a.cameAs - b.cameAs || keys.indexOf(a.key) - keys.indexOf(b.key));
}

/** The key whose first task may start now. It has lost its turn, and its tokens are taken. */
export function takeTurn(turns: ModelTurns, nowMs: number): string | undefined {
  const key = turns.ring[0]?.key;
  if (key === undefined || queueHeldBy(turns, nowMs) !== undefined) return undefined;
  turns.ring.shift();
  const { rate, perKey } = turns.limits ?? {};
  for (const [name, one] of [
    ['queue', rate],
    [`key ${key}`, perKey?.rate],
  ] as const) {
    if (one) turns.fullAtMs.set(name, fullAtMs(turns, name, nowMs) + tokenMs(one));
  }
  return key;
}

export function setLimits(turns: ModelTurns, limits: QueueLimits | undefined, nowMs: number): void {
  turns.limits = limits;
  for (const name of turns.fullAtMs.keys()) {
    const rate = name === 'queue' ? limits?.rate : limits?.perKey?.rate;
    if (rate === undefined) turns.fullAtMs.delete(name);
    else
      turns.fullAtMs.set(name, Math.min(fullAtMs(turns, name, nowMs), nowMs + burstOf(rate) * tokenMs(rate)));
  }
  arrange(turns, nowMs);
}

/** When keys that wait for a token get it. */
export function tokenTimes(turns: ModelTurns, nowMs: number): number[] {
  return keysOf(turns)
    .filter((key) => countOf(turns, key, 'pending') > 0 && keyHeldBy(turns, key, nowMs) === 'rate')
    .map((key) => nowMs + (keyAgainInMs(turns, key, nowMs) ?? NaN));
}

/** What is shown of keys and limits. */
export function showTurns(turns: ModelTurns, nowMs: number): unknown {
  const held = { concurrency: 0, rate: 0 };
  const holdAllBut = (left: Left, count: number): number => {
    const mayStart = Math.min(left.concurrency, left.rate, count);
    held[left.rate < left.concurrency ? 'rate' : 'concurrency'] += count - mayStart;
    return mayStart;
  };
  const { limits } = turns;
  const free = keysOf(turns).map((key) =>
    holdAllBut(
      leftUnder(turns, limits?.perKey, `key ${key}`, countOf(turns, key, 'active'), nowMs),
      countOf(turns, key, 'pending'),
    ),
  );
  holdAllBut(
    leftUnder(turns, limits, 'queue', countActive(turns), nowMs),
    free.reduce((sum, count) => sum + count, 0),
  );
  const keys = keysOf(turns).map((key): KeyStats => ({
    key,
    pending: countOf(turns, key, 'pending'),
    active: countOf(turns, key, 'active'),
    heldBy: keyHeldBy(turns, key, nowMs),
    againInMs: keyAgainInMs(turns, key, nowMs),
  }));
  return { limits: filled(limits), held, keys, turns: turns.ring.map(({ key }) => key) };
}

/** How many tasks may start. */
type Left = Readonly<Record<LimitKind, number>>;

function leftUnder(
  turns: ModelTurns,
  { concurrency = Infinity, rate }: QueueLimits = {},
  name: string,
  active: number,
  nowMs: number,
): Left {
  const tokens = rate && burstOf(rate) - (fullAtMs(turns, name, nowMs) - nowMs) / tokenMs(rate);
  return {
    concurrency: Math.max(concurrency - active, 0),
    // A millionth of a token may be missing: times are not exact.
    rate: tokens === undefined ? Infinity : Math.max(Math.floor(tokens + 1e-6), 0),
  };
}

function countActive({ tasks }: ModelTurns): number {
  return tasks.filter(({ state }) => state === 'active').length;
}

/** Keys with tasks that are pending or active, in order of their names. */
function keysOf({ tasks }: ModelTurns): string[] {
  const keys = tasks
    .filter(({ state }) => state === 'pending' || state === 'active')
    .map(({ message }) => message.key);
  return [...new Set(keys)].sort();
}

function countOf({ tasks }: ModelTurns, key: string, of: TaskState): number {
  return tasks.filter(({ message, state }) => state === of && message.key === key).length;
}

function queueHeldBy(turns: ModelTurns, nowMs: number): LimitKind | undefined {
  const { concurrency = Infinity, rate } = turns.limits ?? {};
  if (countActive(turns) >= concurrency) return 'concurrency';
  return rate && nextTokenMs(turns, 'queue', rate, nowMs) > nowMs ? 'rate' : undefined;
}

function keyHeldBy(turns: ModelTurns, key: string, nowMs: number): LimitKind | undefined {
  if (countOf(turns, key, 'active') >= (turns.limits?.perKey?.concurrency ?? Infinity)) return 'concurrency';
  return keyAgainInMs(turns, key, nowMs) === undefined ? undefined : 'rate';
}

function keyAgainInMs(turns: ModelTurns, key: string, nowMs: number): number | undefined {
  const rate = turns.limits?.perKey?.rate;
  const inMs = rate && nextTokenMs(turns, `key ${key}`, rate, nowMs) - nowMs;
  return inMs !== undefined && inMs > 0 ? inMs : undefined;
}

function nextTokenMs(turns: ModelTurns, name: string, rate: Rate, nowMs: number): number {
  return fullAtMs(turns, name, nowMs) - (burstOf(rate) - 1) * tokenMs(rate);
}

function fullAtMs(turns: ModelTurns, name: string, nowMs: number): number {
  return Math.max(turns.fullAtMs.get(name) ?? 0, nowMs);
}

function tokenMs({ tasks, perMs }: Rate): number {
  return perMs / tasks;
}

function burstOf({ tasks, burst = tasks }: Rate): number {
  return burst;
}

function filled(limits: QueueLimits | undefined): QueueLimits | undefined {
  const ofOne = ({ concurrency, rate }: Omit<QueueLimits, 'perKey'>): Omit<QueueLimits, 'perKey'> => ({
    ...(concurrency !== undefined && { concurrency }),
    ...(rate && { rate }),
  });
  const perKey = ofOne(limits?.perKey ?? {});
  const all = { ...ofOne(limits ?? {}), ...(Object.keys(perKey).length > 0 && { perKey }) };
  return Object.keys(all).length > 0 ? all : undefined;
}
