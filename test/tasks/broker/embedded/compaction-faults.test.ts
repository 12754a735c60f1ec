import { EmbeddedBroker, type EmbeddedBrokerOptions } from 'escapement/tasks';
import { expect, test } from 'vitest';
import type { FileSystem } from '../../../../src/log/file-system.ts';
import { newTask, QUEUE, take } from '../../../conformance/broker/support.ts';
import { FaultyFileSystem } from '../../../diskqueue/faulty-file-system.ts';
import { RecordingFileSystem } from '../../../diskqueue/recording-file-system.ts';
import { folderOfFile } from '../../../folder.ts';
import { stepOf } from '../../../runs.ts';
import { openFolder } from './open-folder.ts';

/** For the lock; the files are in memory. */
const folder = folderOfFile();

const open = (files: FileSystem, options: EmbeddedBrokerOptions = {}): Promise<EmbeddedBroker> =>
  openFolder(folder, options, files);

/** Enqueues tasks and completes most of them, until the disk fails. @returns the ids of those that must be there. */
async function workUntilItFails(broker: EmbeddedBroker): Promise<Set<string>> {
  const there = new Set<string>();
  try {
    for (let at = 0; at < 30; at++) {
      await broker.enqueue(newTask({ id: `${at}`, payload: new Uint8Array(1_200) }));
      there.add(`${at}`);
      const task = await take(broker);
      if (at % 7 === 0) continue;
      there.delete(task.message.id);
      await broker.complete(task);
    }
  } catch (error) {
    expect(error).toMatchObject({ code: 'ERR_BROKER_UNAVAILABLE' });
  }
  return there;
}

/** Calls of sync until a broker is open. */
const OPENING_SYNCS = 2;

test.each(['always', 'os'] as const)(
  'a sync that fails while the log is compacted costs no task that was enqueued (%s)',
  async (durability) => {
    const lost: string[] = [];
    for (let nth = OPENING_SYNCS, hasFailed = true; hasFailed; nth += stepOf(3)) {
      const disk = new RecordingFileSystem();
      const files = new FaultyFileSystem(disk, { call: 'sync', nth, code: 'EIO', isLasting: false });
      const broker = await open(files, { durability });
      const there = await workUntilItFails(broker);
      hasFailed = files.failures > 0;
      await broker.close().catch(Boolean);
      const after = await open(disk);
      for (const id of there)
        await after.task(QUEUE, id).catch(() => lost.push(`${id} with the failure of sync ${nth}`));
      await after.close();
    }
    expect(lost).toEqual([]);
  },
);
