import { describe, expect, it } from 'vitest';
import type { DemoResult, SentImage } from '../../examples/jobs/demo/demo-result.ts';
import type { QueueCounts } from '../../examples/jobs/demo/jobs-client.ts';
import { selfCheck } from '../../examples/jobs/demo/self-check.ts';
import type { RunLine } from '../../examples/jobs/service/run-log.ts';
import { resultRows } from '../../examples/jobs/terminal/result-rows.ts';

function image(id: string, changes: Partial<SentImage> = {}): SentImage {
  const job = {
    ...{ id, state: 'completed', retried: 0, lastError: '' },
    progress: { done: 2, of: 2 },
    sizes: [],
  };
  const received = [
    { width: 100, height: 50, format: 'webp' },
    { width: 50, height: 25, format: 'webp' },
  ];
  return {
    ...{ id, name: `${id}.png`, width: 400, height: 200, isBroken: false, received },
    job: job as SentImage['job'],
    ...changes,
  };
}

function archived(id: string): SentImage {
  const { job } = image(id);
  return image(id, { isBroken: true, received: [], job: { ...job, state: 'archived', progress: undefined } });
}

function run(taskId: string, changes: Partial<RunLine> = {}): RunLine {
  return { type: 'image:resize', taskId, retryCount: 0, durationMs: 1, error: undefined, ...changes };
}

function counts(queue: string, changes: Partial<QueueCounts> = {}): QueueCounts {
  const none = { active: 0, pending: 0, scheduled: 0, retry: 0, aggregating: 0, archived: 0, completed: 0 };
  return { queue, ...none, ...changes };
}

const REFUSED = new Error('the storage is busy');

/** A run in which all is well: `b` was refused once, `c` is broken. */
const GOOD: DemoResult = {
  widths: [100, 50],
  graceMs: 500,
  bursts: [{ customer: 'ada', images: [image('a'), image('b'), archived('c')] }],
  notifications: [
    { imageId: 'a', atMs: 0 },
    { imageId: 'b', atMs: 300 },
  ],
  digests: [{ recipient: 'ada', images: ['a', 'b'].map((id) => ({ id, sizes: 2 })) }],
  runs: [
    run('a'),
    run('b', { error: REFUSED }),
    run('c', { error: new Error('no image') }),
    run('b', { retryCount: 1 }),
    run('tick', { type: 'files:clean-up' }),
  ],
  refusals: 1,
  queues: [counts('images', { archived: 1, completed: 2 }), counts('notifications')],
  oldFilesLeft: 0,
};

function burst(...images: SentImage[]): Partial<DemoResult> {
  return { bursts: [{ customer: 'ada', images }] };
}

const [A, B, C] = [image('a'), image('b'), archived('c')];
const DIGEST_OF_A = { recipient: 'ada', images: [{ id: 'a', sizes: 2 }] };
const DIGEST_OF_B = { recipient: 'ada', images: [{ id: 'b', sizes: 2 }] };

describe('the self-check of the image jobs', () => {
  it('has nothing to say when all is well', () => {
    expect(selfCheck(GOOD)).toEqual([]);
  });

  it.each<[string, Partial<DemoResult>]>([
    ['no image was sent', { bursts: [] }],
    ['a.png is archived: ', burst({ ...A, job: { ...A.job, state: 'archived' } }, B, C)],
    [
      'a.png came as 100×50 webp, not 100×50 webp, 50×25 webp',
      burst({ ...A, received: A.received.slice(0, 1) }, B, C),
    ],
    ['a.png came as', burst({ ...A, received: A.received.map((one) => ({ ...one, format: 'png' })) }, B, C)],
    ['the progress of a.png is {"done":1}', burst({ ...A, job: { ...A.job, progress: { done: 1 } } }, B, C)],
    ['the progress of a.png is undefined', burst({ ...A, job: { ...A.job, progress: undefined } }, B, C)],
    ['c.png is no image, and completed', burst(A, B, { ...C, job: A.job })],
    [
      'c.png is no image, and was tried more than once',
      { runs: [...GOOD.runs, run('c', { retryCount: 1 })] },
    ],
    ['the storage has refused nothing', { refusals: 0 }],
    ['the storage has refused 2 times, and 1 runs have failed', { refusals: 2 }],
    ['1 failures were retried 0 times', { runs: GOOD.runs.filter(({ retryCount }) => retryCount === 0) }],
    ["b.png was to be told to 'ada', and was to ''", { digests: [DIGEST_OF_A] }],
    ["a.png was to be told to 'ada', and was to 'ada,ada'", { digests: [...GOOD.digests, DIGEST_OF_A] }],
    [
      "c.png was to be told to '', and was to 'bob'",
      { digests: [...GOOD.digests, { recipient: 'bob', images: [{ id: 'c', sizes: 0 }] }] },
    ],
    ['a burst of ada made 2 digests, not 1', { digests: [DIGEST_OF_A, DIGEST_OF_B] }],
    ['3 old files were not removed', { oldFilesLeft: 3 }],
    ['nobody has cleaned up', { runs: GOOD.runs.slice(0, -1) }],
    [
      'the queue images still has 1 tasks to do',
      { queues: [counts('images', { archived: 1, completed: 2, active: 1 })] },
    ],
    [
      'the administration shows 1 images done and 2 archived',
      { queues: [counts('images', { archived: 2, completed: 1 })] },
    ],
    ['the administration shows no images', { queues: [] }],
  ])('complains: %s', (complaint, changes) => {
    expect(selfCheck({ ...GOOD, ...changes }).join('\n')).toContain(complaint);
  });

  it('allows another digest where a grace period has passed', () => {
    const notifications = [
      { imageId: 'a', atMs: 0 },
      { imageId: 'b', atMs: 501 },
    ];
    expect(selfCheck({ ...GOOD, digests: [DIGEST_OF_A, DIGEST_OF_B], notifications })).toEqual([]);
  });
});

describe('the table of the image jobs', () => {
  it('counts what happened', () => {
    const values = Object.fromEntries(resultRows(GOOD).map(({ label, value }) => [label, value]));
    expect(values).toMatchObject({
      'images sent': '3',
      runs: '4',
      archived: '1',
      digests: '1',
      'clean-ups': '1',
    });
    expect(values['time of a job']).toBe('1.00 ms');
  });
});
