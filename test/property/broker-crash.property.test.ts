import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { EmbeddedBroker, type TaskRecord } from 'escapement/tasks';
import type { ManualClock } from 'escapement/testing';
import { expect, test } from 'vitest';
import { FILE_SYSTEM, type FileSystem } from '../../src/log/file-system.ts';
import { INTERNALS } from '../../src/tasks/broker/embedded/embedded-broker.ts';
import { everyRemains, RecordingFileSystem, type Disk } from '../diskqueue/recording-file-system.ts';
import { folderOfFile } from '../folder.ts';
import { propertyRuns, timeoutOf } from '../runs.ts';
import { history, maxArchived, type BrokerAction } from './broker-actions.ts';
import { byId } from './broker-model-parts.ts';
import { BrokerModel } from './broker-model.ts';
import { showBroker, type ShownBroker } from './broker-show.ts';
import { embeddedSide, type BrokerSide } from './broker-side.ts';
import { BrokerWorld, OPTIONS } from './broker-world.ts';

/*
 * Histories of a broker whose machine loses its power. A history is done once, on a disk that records it. Then every disk that a
 * power cut may leave is opened, at every moment of the history: each write since the last sync may be there, missing, cut,
 * zeros in part, or there without one that was made before it. What is shown then must be what the model showed after the last
 * action that had settled, or after a later one that had been asked for: all of an action, or nothing, and no action without
 * those before it.
 */

/** Images of one history that are opened, at most: of a longer one, as many, spread over all. */
const MOST_IMAGES = 300;

/** In one of so many images the history goes on. */
const USED = 5;

const folder = folderOfFile();

/** The broker and the model after an action. */
interface Mark {
  readonly action: BrokerAction | undefined;
  /** Operations of the disk when the action began and when it had settled. */
  readonly begun: number;
  readonly settled: number;
  /** Whether what it changed was on the disk when it had settled. */
  readonly isDurable: boolean;
  readonly nowMs: number;
  readonly model: BrokerModel;
}

interface CrashSide extends BrokerSide {
  /** Returns the number of changes until now. */
  readonly changes: () => number;
}

async function openSide(files: FileSystem, max: number, nowMs: number): Promise<CrashSide> {
  const damages: string[] = [];
  const open = (clock: ManualClock): Promise<EmbeddedBroker> => {
    const options = {
      ...{ clock, dataPath: folder, maxArchived: max, archiveRetentionMs: OPTIONS.archiveRetentionMs },
      ...{ maxBytesPerFile: 4_096, [FILE_SYSTEM]: files },
      onCorruption: ({ reason }: { reason: string }) => damages.push(reason),
    };
    return EmbeddedBroker.open(options);
  };
  const reopen = (broker: EmbeddedBroker, clock: ManualClock): Promise<EmbeddedBroker> =>
    broker.close().then(() => open(clock));
  const side = await embeddedSide(nowMs, { open, reopen });
  const check = side.check.bind(side);
  return Object.assign(side, {
    changes: () =>
      (side.broker[INTERNALS]().store as unknown as { journal: { entries: number } }).journal.entries,
    check: () => check().then(() => expect(damages).toEqual([])),
  });
}

/** Does a history. @returns a mark before it, and one after each action. */
async function record(
  files: RecordingFileSystem,
  max: number,
  actions: readonly BrokerAction[],
): Promise<Mark[]> {
  const model = new BrokerModel({ ...OPTIONS, maxArchived: max, ties: 'arrival' });
  await using side = await openSide(files, max, OPTIONS.startMs);
  let before = { settled: 0, changes: side.changes() };
  const mark = (action?: BrokerAction): Mark => {
    const begun = before.settled;
    // What a clock changes is not waited for, and a lease only for the host. A reopen ends with a sync.
    const isWaitedFor = !['advance', 'dequeue', 'recover'].includes(action?.kind ?? '');
    const isDurable = action?.kind === 'reopen' || (isWaitedFor && side.changes() > before.changes);
    before = { settled: files.log.length, changes: side.changes() };
    return { action, begun, settled: before.settled, isDurable, nowMs: side.wallNow(), model: model.copy() };
  };
  const marks = [mark()];
  await BrokerWorld.goOn(side, model, actions, (action) => {
    marks.push(mark(action));
  });
  return marks;
}

/** A disk that a power cut may leave, and what may be seen of it. */
interface Image {
  readonly disk: Disk;
  readonly point: number;
  readonly nowMs: number;
  /** The first and the last mark that it may show. */
  readonly from: number;
  readonly to: number;
}

function* imagesOf(files: RecordingFileSystem, marks: readonly Mark[]): Generator<Image> {
  for (let point = 0; point <= files.log.length; point++) {
    const to = marks.findLastIndex(({ begun }) => begun <= point);
    const from = Math.max(
      0,
      marks.findLastIndex(({ settled, isDurable }) => isDurable && settled <= point),
    );
    const nowMs = marks[to]?.nowMs ?? 0;
    for (const remains of everyRemains())
      yield { disk: files.afterPowerCut(point, remains), point, nowMs, from, to };
  }
}

/** The model after a mark and a reopen at that time. */
function reopened({ model, nowMs: markedMs }: Mark, nowMs: number): BrokerModel {
  const after = model.copy();
  after.advance(nowMs - markedMs);
  after.reopen();
  return after;
}

type Shown = ShownBroker & Record<string, { tasks: TaskRecord[][]; groups: Record<string, TaskRecord[]> }>;

/** In which order keys have their turns after a reopen is not promised. */
function inAnyTurn(shown: unknown): unknown {
  const queues = Object.entries(shown as Shown);
  return Object.fromEntries(
    queues.map(([name, queue]) => [name, { ...queue, turns: [...queue.turns].sort() }]),
  );
}

/** In which order tasks come that fell due while the broker was closed is not promised. */
function sorted(shown: unknown): unknown {
  const queues = Object.entries(inAnyTurn(shown) as Shown).map(([name, queue]) => {
    const groups = Object.entries(queue.groups).map(([group, tasks]) => [group, [...tasks].sort(byId)]);
    return [name, { ...queue, groups, tasks: queue.tasks.map((tasks) => [...tasks].sort(byId)) }];
  });
  return Object.fromEntries(queues);
}

/** Large tasks that come and go: what is done then compacts the log. */
const BEFORE: readonly BrokerAction[] = Array.from({ length: 6 }, () => {
  const times = { delay: 0, ttlMs: 5_000, retentionMs: 0 } as const;
  const names = { id: 'h', queue: 'q', group: '', key: '', lock: '' } as const;
  const task = { ...names, ...times, isNext: false, onDuplicate: 'reject' } as const;
  return [
    { kind: 'enqueue', task } as const,
    { kind: 'one', change: 'delete', queue: 'q', id: 'h' } as const,
  ];
}).flat();

/** A text that is the same for equal disks. */
function imageOf(disk: Disk): string {
  const files = [...disk].map(([path, bytes]) => `${path} ${bytes.toString('latin1')}`);
  return files.sort().join(' ');
}

async function explore(max: number, actions: readonly BrokerAction[]): Promise<void> {
  const files = new RecordingFileSystem();
  const done = [...BEFORE, ...actions];
  const marks = await record(files, max, done);
  const images = [...imagesOf(files, marks)];
  const stride = Math.ceil(images.length / MOST_IMAGES);
  /** What many images show is the same: only what was promised differs. */
  const shownBy = new Map<string, unknown>();
  for (let nth = 0; nth < images.length; nth += stride) {
    const { disk, point, nowMs, from, to } = images[nth] as Image;
    const legal = marks.slice(from, to + 1).map((mark) => reopened(mark, nowMs));
    const isOrdered = marks.slice(from, to).every((mark) => mark.nowMs === nowMs);
    const view = isOrdered ? inAnyTurn : sorted;
    const where = `image ${nth} of the power cut at ${point}, in ${JSON.stringify(marks[to]?.action)}`;
    const modelOf = (shown: unknown): BrokerModel => {
      const model = legal.find((one) => isDeepStrictEqual(view(one.show()), view(shown)));
      if (model === undefined) expect(view(shown), where).toEqual(view(legal[0]?.show()));
      return model as BrokerModel;
    };
    const key = `${nowMs} ${imageOf(disk)}`;
    if (shownBy.has(key)) {
      modelOf(shownBy.get(key));
      continue;
    }
    await using side = await openSide(new RecordingFileSystem(disk), max, nowMs);
    await side.check();
    shownBy.set(key, await showBroker(side));
    const model = modelOf(shownBy.get(key));
    // How often a task was recovered is not shown: it is known if there is one choice.
    if (shownBy.size % USED === 0 && from === to)
      await BrokerWorld.goOn(side, model, done.slice(to, to + 10));
  }
}

/** How many histories `npm run test:all` explores. */
const HISTORIES = 3;

test(
  'after a power cut a broker has every action that had settled, and of others all or nothing, whatever the disk has kept',
  { timeout: 10 * timeoutOf(HISTORIES) },
  async () => {
    await fc.assert(fc.asyncProperty(maxArchived, history, explore), propertyRuns(HISTORIES));
  },
);
