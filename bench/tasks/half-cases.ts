/** One half of it: tasks are enqueued and nobody is there, or all are there when somebody comes. */
import fastq from 'fastq';
import PQueue from 'p-queue';
import type { BulkCase, BulkRun, Contestant } from '../lib/part.ts';
import { Jobs, type Work } from '../workqueue/jobs.ts';
import { keysUpTo } from '../workqueue/keys.ts';
import { handlerOf, OurTasks, taskOf } from './our-tasks.ts';

const CONCURRENCY = 100;
const resolved = Promise.resolve();

/** A queue whose workers wait until they are told. What takes its time returns a promise. */
interface HeldQueue {
  addAll(keys: readonly string[]): unknown;
  start(): unknown;
  waiting(): number | Promise<number>;
  close(): unknown;
}

type OpenHeld = (jobs: Work) => HeldQueue | Promise<HeldQueue>;

const heldFastq: OpenHeld = (jobs) => {
  const queue = fastq((key: string, done: fastq.done) => {
    jobs.work(key);
    void resolved.then(done as () => void);
  }, CONCURRENCY);
  queue.pause();
  return {
    addAll: (keys) => {
      for (const key of keys) queue.push(key);
    },
    start: () => {
      queue.resume();
    },
    waiting: () => queue.length(),
    close: () => {
      queue.kill();
    },
  };
};

const heldPQueue: OpenHeld = (jobs) => {
  const queue = new PQueue({ concurrency: CONCURRENCY, autoStart: false });
  return {
    addAll: (keys) => {
      for (const key of keys) {
        void queue.add(() => {
          jobs.work(key);
        });
      }
    },
    start: () => {
      queue.start();
    },
    waiting: () => queue.size,
    close: () => {
      queue.clear();
    },
  };
};

function heldTasks(addAll: (ours: OurTasks, keys: readonly string[]) => Promise<unknown>): OpenHeld {
  return async (jobs) => {
    const ours = await OurTasks.open(CONCURRENCY);
    return {
      addAll: (keys) => addAll(ours, keys),
      start: () => ours.start(handlerOf(jobs)),
      waiting: () => ours.count('pending'),
      close: () => ours.close(),
    };
  };
}

const heldOneByOne = heldTasks(({ client }, keys) =>
  Promise.all(keys.map((key) => client.enqueue(taskOf(key)))),
);
const heldTogether = heldTasks(({ client }, keys) => client.enqueueMany(keys.map(taskOf)));

const OTHERS: readonly Contestant<OpenHeld>[] = [
  { name: 'fastq', role: 'baseline', open: heldFastq },
  { name: 'p-queue', role: 'rival', open: heldPQueue },
];

function contest<Open>(
  contestants: readonly Contestant<OpenHeld>[],
  openWith: (open: OpenHeld) => Open,
): Contestant<Open>[] {
  return contestants.map((contestant) => ({ ...contestant, open: openWith(contestant.open as OpenHeld) }));
}

/** Keys come again and again, a thousand at a time, as tasks do. */
const BURST = 1_000;

function burstsOf(size: number): readonly (readonly string[])[] {
  return Array.from({ length: Math.ceil(size / BURST) }, (_, burst) =>
    keysUpTo(Math.min(BURST, size - burst * BURST)),
  );
}

async function fill(queue: HeldQueue, size: number): Promise<void> {
  for (const keys of burstsOf(size)) await queue.addAll(keys);
}

function openEnqueue(open: OpenHeld): (size: number) => Promise<BulkRun> {
  return async (size) => {
    const queue = await open(new Jobs());
    let waiting = 0;
    return {
      run: async () => {
        await fill(queue, size);
        waiting = await queue.waiting();
        return size;
      },
      check: () => (waiting === size ? undefined : `${waiting} wait, not ${size}`),
      close: () => queue.close(),
    };
  };
}

function openProcess(open: OpenHeld): (size: number) => Promise<BulkRun> {
  return async (size) => {
    const jobs = new Jobs();
    const queue = await open(jobs);
    const allDone = jobs.expect(burstsOf(size).flat());
    await fill(queue, size);
    return {
      run: async () => {
        await queue.start();
        await allDone;
        return size;
      },
      check: () => jobs.check(),
      close: () => queue.close(),
    };
  };
}

const SIZE = { full: 100_000, quick: 5_000, of: 'tasks' };

export const enqueueCase: BulkCase = {
  kind: 'bulk',
  name: 'enqueued, and nobody is there',
  note: 'A thousand at a time, then the next. A push of fastq puts an object into a list.',
  size: SIZE,
  contestants: contest(
    [
      ...OTHERS,
      { name: 'ours: enqueue', role: 'ours', open: heldOneByOne },
      { name: 'ours: enqueueMany', role: 'ours', open: heldTogether },
    ],
    openEnqueue,
  ),
};

export const processCase: BulkCase = {
  kind: 'bulk',
  name: 'all are there, and done 100 at once',
  size: SIZE,
  contestants: contest([...OTHERS, { name: 'ours', role: 'ours', open: heldTogether }], openProcess),
};
