/** The disk queue against plain file writes, and against the stores that one would use in its place. */
import { describeFolder } from './lib/folder.ts';
import { scenario } from './lib/kinds.ts';
import { aside, atLeast, atMost, metric, TIME, type BenchCase, type BenchPart } from './lib/part.ts';
import { P50, P99 } from './lib/work.ts';

const runs = () => import('./diskqueue/runs.ts');

const PUT_METRICS = [metric(TIME, 'µs/put'), metric('cpu', 'µs/put'), metric('p99', 'µs')];
const CALLERS = 64;

function keepUp(name: string, stores: 'keepUpDurable' | 'keepUp'): BenchCase {
  return scenario({
    name: `a consumer that keeps up, 10 messages a millisecond: ${name}`,
    note:
      'The latency from the call of put to the consumer, both in one process. About ten messages are put at once, because ' +
      'the host’s timers have a resolution of a millisecond.',
    size: { full: 30_000, quick: 1_000, of: 'messages' },
    metrics: [metric(P50, 'µs'), metric(P99, 'µs'), metric('cpu', 'µs/message')],
    contestants: async () => (await runs()).keepingUp(stores),
  });
}

export const part: BenchPart = {
  title: 'messages of 256 bytes in a queue on disk',
  remarks: [
    describeFolder(),
    'write, write + fdatasync: the limit. All pending puts are one write, and one sync, through the same file handles: no ' +
      'checksums, no format, no removal of messages.',
    'classic-level and lmdb are ordered maps: numbers are the keys, and the reader deletes. They have no receivers, no ' +
      'acknowledgements and no waiting. Batched: all pending puts are one batch of classic-level, collected by hand; lmdb ' +
      'does that by itself. Not durable: sync: false, and noSync: true.',
  ],
  cases: [
    scenario({
      name: 'put, durable: 64 callers',
      note: 'Each caller waits for its put before the next one. p99 is the latency of a put.',
      size: { full: 30_000, quick: 1_000, of: 'messages' },
      metrics: PUT_METRICS,
      contestants: async () => (await runs()).puts('putDurable', CALLERS),
      targets: [atLeast('ours', TIME, 0.6)],
    }),
    scenario({
      name: 'put, durable: 1 caller',
      size: { full: 1_000, quick: 50, of: 'messages' },
      metrics: PUT_METRICS,
      contestants: async () => (await runs()).puts('putDurable', 1),
    }),
    scenario({
      name: 'put, not durable: 64 callers',
      note: 'The queue writes three files and syncs each when it is full, which the time includes. The others sync nothing.',
      size: { full: 1_000_000, quick: 10_000, of: 'messages' },
      rounds: 3,
      metrics: PUT_METRICS,
      contestants: async () => (await runs()).puts('put', CALLERS),
      targets: [atMost('ours', TIME, 3.33)], // 300 000 puts a second
    }),
    scenario({
      name: 'put, not durable: 1 caller',
      size: { full: 30_000, quick: 1_000, of: 'messages' },
      metrics: PUT_METRICS,
      contestants: async () => (await runs()).puts('put', 1),
    }),
    scenario({
      name: 'receive and acknowledge what is stored',
      note:
        'From a store that was opened again. Not durable; classic-level and lmdb delete a thousand at a time, which suits ' +
        'them: after a crash up to a thousand would be received again.',
      size: { full: 500_000, quick: 10_000, of: 'messages' },
      metrics: [metric(TIME, 'µs/message'), metric('cpu', 'µs/message')],
      contestants: async () => (await runs()).receives,
      targets: [atMost('ours', TIME, 2)], // 500 000 a second
    }),
    keepUp('durable', 'keepUpDurable'),
    keepUp('not durable', 'keepUp'),
    scenario({
      name: 'open what a killed process has left, a file of 100 MiB',
      note: 'The queue reads its last file and checks every message of it, from the memory of the host.',
      size: { full: 370_000, quick: 20_000, of: 'messages' },
      rounds: 3,
      metrics: [metric(TIME, 'ms')],
      contestants: async () => (await runs()).recoveries,
    }),
    scenario({
      name: 'memory: from ten thousand messages to a million',
      note:
        'In a process of its own. Heap: live bytes after a collection, buffers included. rss is the whole process, and with ' +
        'lmdb the mapped pages of its file, which the host may reclaim.',
      size: { full: 1_000_000, quick: 20_000, of: 'messages' },
      rounds: 1,
      metrics: [metric('heap growth', 'MiB'), metric('rss growth', 'MiB')],
      contestants: async () => (await runs()).depths,
      targets: [atMost('ours', 'heap growth', 1)],
    }),
    scenario({
      name: 'open a queue with ten million messages',
      note:
        'The median of five processes that do nothing else. rss: the growth of the process until it had the first message; ' +
        'peak: the whole process, host and loader included. Ours alone, because filling the others takes minutes.',
      size: { full: 10_000_000, quick: 50_000, of: 'messages' },
      rounds: 1,
      metrics: [
        metric('open', 'ms'),
        metric('first message', 'ms'),
        metric('rss', 'MiB'),
        aside('peak', 'MiB'),
      ],
      contestants: async () => (await runs()).openings,
      targets: [atMost('ours', 'open', 5_000), atMost('ours', 'rss', 200), atMost('ours', 'peak', 200)],
    }),
  ],
};
