/** A simulation: queues on the shards of a cluster, and how often a server polls that serves many of them. */
import { scenario } from './lib/kinds.ts';
import { metric, rival, type BenchCase, type BenchPart } from './lib/part.ts';
import { SeededRandom } from './lib/random.ts';
import { quantileOfSorted } from './lib/statistics.ts';
import { equalLoads, imbalance, imbalanceOf, numbered, partsByKey } from './scaling/placement.ts';
import { randomName, renamed, spread, zipfLoads, type QueueLoad } from './scaling/placement.ts';

const SHARDS = [2, 3, 4, 6, 8, 12, 16];
const QUEUES = [8, 32, 128, 512];
const PARTS = [2, 4, 8, 16, 32];
const SEED = 1;
const ZIPF = 1;
const HOT_AMONG = 64;
const KEYS = [100, 1_000, 10_000];
/** One draw in ten is worse. */
const UNLUCKY = 0.9;

interface Simulated {
  readonly rows: readonly number[];
  readonly rowOf: string;
  readonly columns: readonly number[];
  readonly columnOf: string;
  readonly draws: number;
}

const ofQueues = { rows: SHARDS, rowOf: 'shards', columns: QUEUES, columnOf: 'queues', draws: 1_000 };
const ofParts = { ...ofQueues, columns: PARTS, columnOf: 'parts' };
/** A draw of ten thousand keys is expensive: fewer draws. */
const byKey = { rows: PARTS, rowOf: 'parts', columns: KEYS, columnOf: 'keys', draws: 100 };

/** @param draw - draws names, and returns the imbalance of `column` queues, parts or keys on `row` shards or parts. */
function simulated(
  { rows, rowOf, columns, columnOf, draws }: Simulated,
  name: string,
  note: string,
  draw: (column: number, row: number, random: SeededRandom) => number,
): BenchCase {
  const valuesOf = (row: number, column: number, count: number): Record<string, number> => {
    const random = new SeededRandom(SEED);
    const sorted = Float64Array.from({ length: count }, () => draw(column, row, random)).sort();
    return {
      [`${column} ${columnOf}`]: quantileOfSorted(sorted, 0.5),
      [`${column} p90`]: quantileOfSorted(sorted, UNLUCKY),
    };
  };
  return scenario({
    name,
    note,
    rounds: 1,
    size: { full: draws, quick: 5, of: 'draws' },
    metrics: columns.flatMap((column) => [metric(`${column} ${columnOf}`), metric(`${column} p90`)]),
    contestants: () =>
      rows.map((row) =>
        rival(`${row} ${rowOf}`, (count) => {
          const each = columns.map((column) => valuesOf(row, column, count));
          return Promise.resolve({ values: Object.assign({}, ...each) as Record<string, number> });
        }),
      ),
  });
}

function one(random: SeededRandom): QueueLoad {
  return { queue: randomName(random), share: 1 };
}

function hottestSplit(parts: number, random: SeededRandom): readonly QueueLoad[] {
  const [hottest, ...others] = zipfLoads(HOT_AMONG, ZIPF, random);
  return hottest === undefined ? others : [...spread(hottest, parts), ...others];
}

export const part: BenchPart = {
  title: 'simulated: queues over the shards of a Redis Cluster',
  remarks: [
    'All keys of a queue are in one slot, CRC16 of its name modulo 16 384, and so on one shard; shards have equal ranges of ' +
      'slots. Numbers are multiples of the equal share of a shard: 1 is perfect, and with N shards N is no better than one ' +
      'Redis. The median of a thousand clusters with different names of queues, and the value that one in ten exceeds ' +
      '(p90). The seed is fixed.',
  ],
  cases: [
    simulated(
      ofQueues,
      'queues that have equally much',
      'The share of the busiest shard, as a multiple of an equal share.',
      (queues, shards, random) => imbalance(equalLoads(queues, random), shards),
    ),
    simulated(
      ofQueues,
      'queues by Zipf',
      'The second has half of the load of the first, the third a third.',
      (queues, shards, random) => imbalance(zipfLoads(queues, ZIPF, random), shards),
    ),
    simulated(
      ofParts,
      'one queue in parts: NAME:0, NAME:1, …',
      'A CRC is linear: a common prefix does not change the distance between slots. Four parts are always a quarter of all ' +
        'slots apart; of eight, two are in each quarter, near each other.',
      (parts, shards, random) => imbalance(numbered(one(random), parts), shards),
    ),
    simulated(
      ofParts,
      'one queue in parts of any names',
      'For comparison with the case before.',
      (parts, shards, random) => imbalance(renamed(one(random), parts, random), shards),
    ),
    simulated(
      ofParts,
      'one queue in parts whose names were chosen',
      'NAME:0.2, NAME:1.0, …: with a number that moves each part into its own range of slots.',
      (parts, shards, random) => imbalance(spread(one(random), parts), shards),
    ),
    simulated(
      { ...ofParts, columns: [1, ...PARTS] },
      '64 queues by Zipf, the first in parts whose names were chosen',
      'The first has a fifth of all tasks.',
      (parts, shards, random) => imbalance(hottestSplit(parts, random), shards),
    ),
    simulated(
      byKey,
      'tasks to parts by their key, keys that have equally much',
      'The share of the busiest part, as a multiple of an equal share.',
      (keys, parts, random) => imbalanceOf(partsByKey(equalLoads(keys, random), parts)),
    ),
    simulated(
      byKey,
      'tasks to parts by their key, keys by Zipf',
      'The most frequent key cannot be split.',
      (keys, parts, random) => imbalanceOf(partsByKey(zipfLoads(keys, ZIPF, random), parts)),
    ),
    scenario({
      name: 'how often a server asks for tasks that serves all parts of a queue',
      note:
        'Calls of dequeue; each is for one queue. Concurrency 100, a handler takes 10 ms, a round trip half a millisecond; ' +
        'notifications arrive at once. A real server: only its time is simulated. An idle server polls about once a second, ' +
        'at random times.',
      rounds: 1,
      size: { full: 10_000, quick: 300, of: 'tasks' },
      metrics: [metric('idle, a second'), metric('1 000 a second, a task'), metric('all waiting, a task')],
      contestants: async () => (await import('./scaling/serving.ts')).serving,
    }),
  ],
};
