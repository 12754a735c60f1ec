import { appendFileSync } from 'node:fs';
import { describe, expect } from 'vitest';
import { Client, EmbeddedBroker, Task } from 'escapement/tasks';
import { DiskQueue } from '../../src/diskqueue/disk-queue.ts';
import { folderOfTest } from '../folder.ts';
import { diskQueue, diskQueueJson } from './support/command.ts';
import { damage, hashOf, makeNsqQueue, makeQueue, numbered, it } from './support/queue-folder.ts';

const PAYLOAD = 128 + 24;

describe('escapement diskqueue verify', () => {
  it('diskqueue verify finds no problems in intact queues', async ({ folder }) => {
    await makeQueue(folder, 'orders', numbered(30), { acked: 3 });
    makeNsqQueue(folder, 'events');
    const before = hashOf(folder);
    const { result, code } = await diskQueueJson('verify', folder);
    expect(code).toBe(0);
    expect(result).toEqual({
      folder,
      isClean: true,
      queues: [
        {
          ...{ name: 'events', format: 'nsq', isOpen: false, messages: 5, unacknowledged: 4 },
          ...{ bytes: 49, problems: [], notes: [] },
        },
        {
          ...{ name: 'orders', format: 'checked', isOpen: false, messages: 30, unacknowledged: 27 },
          ...{ bytes: expect.any(Number) as number, problems: [], notes: [] },
        },
      ],
      failed: [],
    });
    const { stdout, stderr } = await diskQueue('verify', folder);
    expect(stdout).toMatch(
      /^events \(nsq\): clean; 5 messages, 4 unacknowledged, 49 bytes\norders \(checked\): clean; 30 messages, 27 unacknowledged, 65 KiB\n$/,
    );
    expect(stderr).toBe('');
    expect(hashOf(folder)).toBe(before);
  });

  it.each(['ls', 'verify', 'repair'])(
    'diskqueue %s shows the queues beside the log of a broker',
    async (command) => {
      const folder = folderOfTest();
      await makeQueue(folder, 'orders', numbered(30));
      const broker = await EmbeddedBroker.open({ dataPath: folder });
      await new Client({ broker }).enqueue(new Task('work'));
      await broker.close();
      const { result, code } = await diskQueueJson(command, folder);
      expect(code).toBe(2);
      const message = "the files of 'tasks' are another program's: records of type 16, not 1";
      expect(result).toMatchObject({
        queues: [{ name: 'orders' }],
        failed: [{ name: 'tasks', format: 'checked', message }],
      });
    },
  );

  it('diskqueue verify lists the damage, and the exit code is 1', async ({ folder }) => {
    await makeQueue(folder, 'orders', numbered(30));
    await makeQueue(folder, 'other', ['a']);
    damage(folder, 'orders.0000000001.segment', PAYLOAD + 3);
    const file = `${folder}/orders.0000000001.segment`;
    const { result, code } = await diskQueueJson('verify', folder);
    expect(code).toBe(1);
    expect(result).toMatchObject({
      isClean: false,
      queues: [
        {
          name: 'orders',
          messages: 29,
          problems: [
            {
              ...{ file, offset: 128, bytes: 33, firstSequence: 1, lastSequence: 1 },
              reason: 'the checksum of a payload is wrong',
            },
          ],
        },
        { name: 'other', problems: [] },
      ],
    });
    const { stdout } = await diskQueue('verify', folder);
    expect(stdout).toContain('orders (checked): 1 problem; 29 messages');
    expect(stdout).toContain(
      `  problem  ${file} at 128, 33 bytes, message 1: the checksum of a payload is wrong\n`,
    );
    expect((await diskQueue('verify', folder, '--queue', 'other')).code).toBe(0);
  });

  it('diskqueue verify prints what a crash may leave as a note, not as a problem', async ({ folder }) => {
    await makeQueue(folder, 'orders', numbered(3));
    appendFileSync(`${folder}/orders.0000000002.segment`, Buffer.from([1, 2, 3]));
    makeNsqQueue(folder, 'events');
    appendFileSync(`${folder}/events.diskqueue.000002.dat`, Buffer.from([0, 0, 0, 9, 1]));
    const { result, code } = await diskQueueJson('verify', folder);
    expect(code).toBe(0);
    for (const { notes } of result.queues) expect(notes?.length).toBeGreaterThan(0);
    expect((await diskQueue('verify', folder)).stdout).toMatch(/^ {2}note {5}.*orders\.0000000002/m);
  });

  it('diskqueue verify reads a queue that is open, with a note', async ({ folder }) => {
    const queue = await DiskQueue.open({ name: 'orders', dataPath: folder });
    await queue.put(Buffer.from('a'));
    const { stdout, code } = await diskQueue('verify', folder);
    expect(stdout).toContain('note     it is open: ');
    expect(code).toBe(0);
    await queue.close();
  });
});
