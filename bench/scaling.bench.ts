/** A simulation: queues on the shards of a cluster, and how often a server polls that serves many of them. */
import { scenario } from './lib/kinds.ts';
import { metric, rival, type BenchCase, type BenchPart, type Measurement } from './lib/part.ts';
import { SeededRandom } from './lib/random.ts';
import { quantileOfSorted } from './lib/statistics.ts';
import { equalLoads, imbalance, imbalanceOf, numbered, partsByKey } from './scaling/placement.ts';
import { randomName, renamed, spread, zipfLoads, type QueueLoad } from './scaling/placement.ts';
import { servingCase } from './scaling/serving-case.ts';

const SHARDS = [2, 3, 4, 6, 8, 12, 16];
const QUEUES = [8, 32, 128, 512];
const PARTS = [2, 4, 8, 16, 32];
const SEED = 1;
const DRAWS = 1_000;
const ZIPF = 1;
const HOT_AMONG = 64;
const KEYS = [100, 1_000, 10_000];
/** One draw in ten is worse. */
const UNLUCKY = 0.9;

/** Draws names. @returns the imbalance of `column` queues, parts or keys on `row` shards or parts. */
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

function simulate({ draw, columns, columnOf }: Simulated, row: number, draws: number): Measurement {
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

function simulatedCase(simulated: Simulated): BenchCase {
  const { name, note, rows, rowOf, columns, columnOf, draws = DRAWS } = simulated;
  return scenario({
    name,
    note,
    rounds: 1,
    size: { full: draws, quick: 5, of: 'draws' },
    metrics: columns.flatMap((column) => metricsOf(column, columnOf)).map((name) => metric(name)),
    contestants: rows.map((row) =>
      rival(`${row} ${rowOf}`, (count) => Promise.resolve(simulate(simulated, row, count))),
    ),
  });
}

const overShards = { rows: SHARDS, rowOf: 'shards' };
const ofQueues = { ...overShards, columns: QUEUES, columnOf: 'queues' };
const ofParts = { ...overShards, columns: PARTS, columnOf: 'parts' };
/** A draw of ten thousand keys is expensive: fewer draws. */
const byKey = { rows: PARTS, rowOf: 'parts', columns: KEYS, columnOf: 'keys', draws: 100 };

function one(random: SeededRandom): QueueLoad {
  return { queue: randomName(random), share: 1 };
}

function hottestSplit(parts: number, random: SeededRandom): readonly QueueLoad[] {
  const [hottest, ...others] = zipfLoads(HOT_AMONG, ZIPF, random);
  return hottest === undefined ? others : [...spread(hottest, parts), ...others];
}

const placementCases = [
  simulatedCase({
    ...ofQueues,
    name: 'queues that have equally much',
    note: 'The share of the busiest shard, as a multiple of an equal share.',
    draw: (queues, shards, random) => imbalance(equalLoads(queues, random), shards),
  }),
  simulatedCase({
    ...ofQueues,
    name: 'queues by Zipf',
    note: 'The second has half of the load of the first, the third a third.',
    draw: (queues, shards, random) => imbalance(zipfLoads(queues, ZIPF, random), shards),
  }),
  simulatedCase({
    ...ofParts,
    name: 'one queue in parts: NAME:0, NAME:1, …',
    note:
      'A CRC is linear: a common prefix does not change the distance between slots. Four parts are always a quarter of all ' +
      'slots apart; of eight, two are in each quarter, near each other.',
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
    note: 'NAME:0.2, NAME:1.0, …: with a number that moves each part into its own range of slots.',
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
    note: 'The share of the busiest part, as a multiple of an equal share.',
    draw: (keys, parts, random) => imbalanceOf(partsByKey(equalLoads(keys, random), parts)),
  }),
  simulatedCase({
    ...byKey,
    name: 'tasks to parts by their key, keys by Zipf',
    note: 'The most frequent key cannot be split.',
    draw: (keys, parts, random) => imbalanceOf(partsByKey(zipfLoads(keys, ZIPF, random), parts)),
  }),
];

export const part: BenchPart = {
  title: 'simulated: queues over the shards of a Redis Cluster',
  remarks: [
    'All keys of a queue are in one slot, CRC16 of its name modulo 16 384, and so on one shard; shards have equal ranges of ' +
      'slots. Numbers are multiples of the equal share of a shard: 1 is perfect, and with N shards N is no better than one ' +
      'Redis. The median of a thousand clusters with different names of queues, and the value that one in ten exceeds ' +
      '(p90). The seed is fixed.',
  ],
  cases: [...placementCases, servingCase],
};
