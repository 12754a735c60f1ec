/** Rows over a ring of pending requests: one alone, replace the oldest, replace a random one, fill a million. */
import { bulk, micro, runOf, type Checked, type MicroRun } from '../lib/kinds.ts';
import { atLeast, atMost, BYTES, contest, NO_SIZE, TIME } from '../lib/part.ts';
import type { BenchCase, CaseOf, Load, Size, Target } from '../lib/part.ts';
import { DelaySequence, SeededRandom } from '../lib/random.ts';
import type { OpenRing } from './kinds.ts';
import type { Ring } from './ring.ts';

/** How many times as fast as the host one of ours must be; a row without a number has no target. */
type Floors = Partial<
  Record<'alone' | 'fewFixed' | 'fewSpread' | 'manyFixed' | 'manySpread' | 'random' | 'fill', number>
>;

/** One delay for all requests, or delays spread over a range. */
interface DelayRange {
  readonly minMs: number;
  readonly maxMs: number;
  readonly label: string;
}

const FIXED: DelayRange = { minMs: 30_000, maxMs: 30_000, label: 'one fixed delay (30 s)' };
const SPREAD: DelayRange = { minMs: 1_000, maxMs: 31_000, label: 'delays 1–31 s' };
const WIDE: DelayRange = { minMs: 5_000, maxMs: 65_000, label: 'delays 5–65 s' };
const MILLION = { full: 1_000_000, quick: 20_000, of: 'timers' };
const FEW = { full: 5_000, quick: 5_000, of: 'timers' };
const MANY = { full: 100_000, quick: 20_000, of: 'timers' };
const ALONE_NOTE =
  'All in one turn of the event loop. Ours sets the host timeout at the end of the turn, if a timer is still pending; ' +
  'the heap leaves its timeout armed and is woken in vain.';

/**
 * From small to large, because V8 does not forget what a large ring teaches it about the lifetime of objects.
 *
 * @param floorsOf - by the names of ours. @param mostBytes - of a request, by the names of ours.
 */
export function ringRows(
  load: Load<OpenRing>,
  floorsOf: Readonly<Record<string, Floors>>,
  mostBytes: Readonly<Record<string, number>> = {},
): BenchCase[] {
  const row = <Run>(
    floor: keyof Floors,
    operation: string,
    delays: DelayRange,
    size: Size,
    loopOf: (ring: Ring) => Run,
  ): CaseOf<(count: number) => Checked & { readonly run: Run }> => ({
    name: `${operation}, ${delays.label}`,
    size,
    contestants: async () =>
      contest(await load(), (open) => (count) => {
        const ring = open(count, new DelaySequence(delays.minMs, delays.maxMs));
        return runOf(ring, loopOf(ring));
      }),
    targets: Object.entries(floorsOf).flatMap(([name, { [floor]: ratio }]): Target[] =>
      ratio === undefined ? [] : [atLeast(name, TIME, ratio)],
    ),
  });

  const replaceOldest = (floor: keyof Floors, size: Size, delays: DelayRange): BenchCase => {
    const operation = `cancel the oldest + add one: ${size.full.toLocaleString('en').replace(',', ' ')} waiting`;
    const loopOf = (ring: Ring): MicroRun['run'] => {
      ring.fill();
      return (count) => ring.replaceOldest(count);
    };
    return micro(row(floor, operation, delays, size, loopOf));
  };

  const alone = row('alone', 'add one + cancel it: nothing else waiting', SPREAD, NO_SIZE, (ring) => {
    return (count: number) => ring.addAndCancel(count);
  });
  const random = row('random', 'cancel a random one + add one: many waiting', WIDE, MILLION, (ring) => {
    const places = new SeededRandom();
    ring.fill();
    return (count: number) => ring.replaceRandom(count, places);
  });
  const fill = row('fill', 'fill: add a request each', WIDE, MILLION, (ring) => () => ring.fill());
  const limits = Object.entries(mostBytes).map(([name, bytes]) => atMost(name, BYTES, bytes));
  return [
    micro({ ...alone, note: ALONE_NOTE }),
    replaceOldest('fewFixed', FEW, FIXED),
    replaceOldest('fewSpread', FEW, SPREAD),
    replaceOldest('manyFixed', MANY, FIXED),
    replaceOldest('manySpread', MANY, SPREAD),
    micro({ ...random, rounds: 4 }),
    bulk({ ...fill, measuresBytes: true, targets: [...(fill.targets ?? []), ...limits] }),
  ];
}
