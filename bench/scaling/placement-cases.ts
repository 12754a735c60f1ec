/** How evenly queues lie over the shards of a cluster, and keys over the parts of a queue: exact slots, random names. */
import type { Contestant, ScenarioCase, ScenarioOutcome } from '../lib/part.ts';
import { quantileOfSorted } from '../lib/statistics.ts';
import { SeededRandom } from '../purgatory/seeded-random.ts';
import { imbalance, imbalanceOf } from './imbalance.ts';
import {
  equalLoads,
  numbered,
  partsByKey,
  randomName,
  renamed,
  spread,
  zipfLoads,
  type QueueLoad,
} from './loads.ts';

const SHARDS = [2, 3, 4, 6, 8, 12, 16];
const QUEUES = [8, 32, 128, 512];
const PARTS = [2, 4, 8, 16, 32];
const SEED = 1;
const DRAWS = 1_000;
const ZIPF = 1;
const HOT_AMONG = 64;
const KEYS = [100, 1_000, 10_000];
/** Nine of ten are better. */
const UNLUCKY = 0.9;

/** Somebody's names, other ones than those of the one before. @returns how uneven it is, with so many and on so many. */
type Draw = (column: number, row: number, random: SeededRandom) => number;

interface Simulated {
  readonly name: string;
  readonly note: string;
  readonly rows: readonly number[];
  readonly rowOf: string;
  readonly columns: readonly number[];
  readonly columnOf: string;
  readonly draw: Draw;
  /** @default 1 000 */
  readonly draws?: number;
}

function metricsOf(column: number, of: string): [string, string] {
  return [`${column} ${of}`, `${column} p90`];
}

function simulate({ draw, columns, columnOf }: Simulated, row: number, draws: number): ScenarioOutcome {
  const values: Record<string, number> = {};
  for (const column of columns) {
    const random = new SeededRandom(SEED);
    const sorted = Float64Array.from({ length: draws }, () => draw(column, row, random)).sort();
    const [middle, unlucky] = metricsOf(column, columnOf);
    values[middle] = quantileOfSorted(sorted, 0.5);
    values[unlucky] = quantileOfSorted(sorted, UNLUCKY);
  }
  return { values, problem: undefined };
}

type OpenSimulated = (draws: number) => Promise<ScenarioOutcome>;

function simulatedCase(simulated: Simulated): ScenarioCase {
  const { name, note, rows, rowOf, columns, columnOf, draws = DRAWS } = simulated;
  return {
    kind: 'scenario',
    name,
    note,
    rounds: 1,
    size: { full: draws, quick: 5, of: 'draws' },
    metrics: columns
      .flatMap((column) => metricsOf(column, columnOf))
      .map((metric) => ({ name: metric, unit: '' })),
    contestants: rows.map((row): Contestant<OpenSimulated> => ({
      name: `${row} ${rowOf}`,
      role: 'rival',
      open: (draws) => Promise.resolve(simulate(simulated, row, draws)),
    })),
  };
}

const overShards = { rows: SHARDS, rowOf: 'shards' };
const ofQueues = { ...overShards, columns: QUEUES, columnOf: 'queues' };
const ofParts = { ...overShards, columns: PARTS, columnOf: 'parts' };
/** Ten thousand names each. */
const byKey = { rows: PARTS, rowOf: 'parts', columns: KEYS, columnOf: 'keys', draws: 100 };

function one(random: SeededRandom): QueueLoad {
  return { queue: randomName(random), share: 1 };
}

function hottestSplit(parts: number, random: SeededRandom): readonly QueueLoad[] {
  const [hottest, ...others] = zipfLoads(HOT_AMONG, ZIPF, random);
  return hottest === undefined ? others : [...spread(hottest, parts), ...others];
}

export const placementCases: readonly ScenarioCase[] = [
  simulatedCase({
    ...ofQueues,
    name: 'queues that have equally much',
    note: 'What the busiest shard has, times its even share.',
    draw: (queues, shards, random) => imbalance(equalLoads(queues, random), shards),
  }),
  simulatedCase({
    ...ofQueues,
    name: 'queues by Zipf',
    note: 'The second has half of what the first has, the third a third.',
    draw: (queues, shards, random) => imbalance(zipfLoads(queues, ZIPF, random), shards),
  }),
  simulatedCase({
    ...ofParts,
    name: 'one queue in parts: NAME:0, NAME:1, …',
    note:
      'A CRC is linear: what is the same before the last byte makes no difference to how far the slots are apart. Four parts are ' +
      'a quarter of all slots apart, always; eight are two in each quarter, near each other.',
    draw: (parts, shards, random) => imbalance(numbered(one(random), parts), shards),
  }),
  simulatedCase({
    ...ofParts,
    name: 'one queue in parts of any names',
    note: 'For comparison with the case before.',
    draw: (parts, shards, random) => imbalance(renamed(one(random), parts, random), shards),
  }),
  simulatedCase({
    ...ofParts,
    name: 'one queue in parts whose names were chosen',
    note: 'NAME:0.2, NAME:1.0, …: with whatever number brings each part into a range of slots of its own.',
    draw: (parts, shards, random) => imbalance(spread(one(random), parts), shards),
  }),
  simulatedCase({
    ...overShards,
    columns: [1, ...PARTS],
    columnOf: 'parts',
    name: '64 queues by Zipf, the first in parts whose names were chosen',
    note: 'The first has a fifth of all tasks.',
    draw: (parts, shards, random) => imbalance(hottestSplit(parts, random), shards),
  }),
  simulatedCase({
    ...byKey,
    name: 'tasks to parts by their key, keys that have equally much',
    note: 'What the busiest part has, times its even share.',
    draw: (keys, parts, random) => imbalanceOf(partsByKey(equalLoads(keys, random), parts)),
  }),
  simulatedCase({
    ...byKey,
    name: 'tasks to parts by their key, keys by Zipf',
    note: 'The key that has most cannot be split.',
    draw: (keys, parts, random) => imbalanceOf(partsByKey(zipfLoads(keys, ZIPF, random), parts)),
  }),
];
