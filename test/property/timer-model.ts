/** The last moment there is: see `delays of any finite length`. */
const HORIZON_MS = Number.MAX_SAFE_INTEGER;

/** What the order of a timer depends on. */
export interface WheelShape {
  readonly tickMs: number;
  readonly wheelSize: number;
  readonly rounding: 'up' | 'down';
}

/** When an entry arrives in a bucket of a level, on its way down to the finest. */
interface Arrival {
  readonly level: number;
  readonly atMs: number;
}

/** One entry of the naive list. */
export interface ModelEntry {
  /** Never before this moment. */
  readonly deadlineMs: number;
  /** The expiration of its finest bucket; when it was placed, if it was due then. */
  readonly dueMs: number;
  /** Where it arrives, coarse to fine; empty if it was due when it was placed. */
  readonly path: readonly Arrival[];
  /** Grows with every placement. */
  readonly serial: number;
  /** It was placed while the timer was behind: who is first of those that expire together is left open. */
  readonly isLoose?: boolean;
}

/** The length of a bucket's time span on a level, in milliseconds; level 1 is the finest. */
function spanMs({ tickMs, wheelSize }: WheelShape, level: number): number {
  return tickMs * wheelSize ** (level - 1);
}

/** The finest level whose turn, seen from `nowMs`, reaches `expirationMs`. */
function levelFor(shape: WheelShape, expirationMs: number, nowMs: number): number {
  for (let level = 1; ; level++) {
    const span = spanMs(shape, level);
    if (Math.floor(expirationMs / span) - Math.floor(nowMs / span) < shape.wheelSize) return level;
  }
}

function roundToTick({ tickMs, rounding }: WheelShape, deadlineMs: number): number {
  let roundedMs = Math.floor(Math.min(deadlineMs, HORIZON_MS - (HORIZON_MS % tickMs)) / tickMs) * tickMs;
  if (rounding === 'up')
    while (roundedMs < deadlineMs && roundedMs + tickMs <= HORIZON_MS) roundedMs += tickMs;
  return roundedMs;
}

/** The same for a timer that has not caught up with `nowMs`: what is due at once joins what expires at this tick. */
export function placeLoosely(shape: WheelShape, delayMs: number, nowMs: number, serial: number): ModelEntry {
  const entry = placeInModel(shape, delayMs, nowMs, serial);
  const isDue = entry.path.length === 0;
  const dueMs = isDue ? Math.floor(nowMs / shape.tickMs) * shape.tickMs : entry.dueMs;
  return { ...entry, dueMs, isLoose: true };
}

/** What becomes of a delay: a pure function of the shape, the delay and the time. */
export function placeInModel(shape: WheelShape, delayMs: number, nowMs: number, serial: number): ModelEntry {
  const deadlineMs = nowMs + delayMs;
  return delayMs <= 0
    ? { deadlineMs, dueMs: nowMs, path: [], serial }
    : placeAtInModel(shape, deadlineMs, nowMs, serial);
}

/** What becomes of a deadline: a pure function of the shape, the deadline and the time that the wheels have reached. */
export function placeAtInModel(
  shape: WheelShape,
  deadlineMs: number,
  nowMs: number,
  serial: number,
): ModelEntry {
  const dueAtOnce: ModelEntry = { deadlineMs, dueMs: nowMs, path: [], serial };
  if (deadlineMs < 0) return dueAtOnce;
  const expirationMs = roundToTick(shape, deadlineMs);
  if (expirationMs <= Math.floor(nowMs / shape.tickMs) * shape.tickMs) return dueAtOnce;
  let level = levelFor(shape, expirationMs, nowMs);
  const path: Arrival[] = [{ level, atMs: nowMs }];
  while (level > 1) {
    const span = spanMs(shape, level);
    const atMs = Math.floor(expirationMs / span) * span;
    if (atMs === expirationMs) break;
    level = levelFor(shape, expirationMs, atMs);
    path.push({ level, atMs });
  }
  return { deadlineMs, dueMs: expirationMs, path, serial };
}

/**
 * Negative if `a` must run before `b`, positive if after, 0 if the contract leaves it open: order of expiration,
 * then order of arrival in the bucket; what is overdue before what was due when it was placed.
 */
export function compareEntries(a: ModelEntry, b: ModelEntry): number {
  const [aWasDue, bWasDue] = [a.path.length === 0, b.path.length === 0];
  const isOpen = a.isLoose === true || b.isLoose === true;
  const areOpen = a.isLoose === true && b.isLoose === true;
  if (aWasDue && bWasDue) return areOpen ? a.dueMs - b.dueMs : a.serial - b.serial;
  if (isOpen) return a.dueMs - b.dueMs;
  if (aWasDue || bWasDue) return a.dueMs - b.dueMs || (aWasDue ? 1 : -1);
  return a.dueMs - b.dueMs || compareArrivals(a, b);
}

/** Both end in buckets of one expiration: who came first into the one they share, if they share one? */
function compareArrivals(a: ModelEntry, b: ModelEntry): number {
  for (let back = 1; ; back++) {
    const [atA, atB] = [a.path.at(-back), b.path.at(-back)];
    if (atA === undefined || atA.level !== atB?.level) return 0;
    const [aIsFirst, bIsFirst] = [back === a.path.length, back === b.path.length];
    if (aIsFirst && bIsFirst) return a.serial - b.serial;
    // The wheels catch up before an insertion: who comes down at a moment is there before who is added at it.
    if (aIsFirst || bIsFirst) return atA.atMs - atB.atMs || (aIsFirst ? 1 : -1);
    if (atA.atMs !== atB.atMs) return atA.atMs - atB.atMs;
  }
}
