import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { checkBroker, checkBrokerLog } from 'escapement/testing';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { hashOfBytes, RowIndex } from '../../../../src/tasks/broker/embedded/row-index.ts';
import { TaskRow } from '../../../../src/tasks/broker/embedded/task-lists.ts';
import { idsOf, newTask, QUEUE } from '../../../conformance/broker/support.ts';
import { folderOfTest } from '../../../folder.ts';
import { propertyRuns } from '../../../runs.ts';
import { openFolder } from './open-folder.ts';

/** The first two, and the next two, have the same hash. */
const IDS = ['costarring', 'liquid', 'declinate', 'macallums', 'plain', 'é', ''];

function hashOf(id: string): number | undefined {
  const bytes = Buffer.from(id);
  return hashOfBytes(bytes, 0, bytes.length);
}

function rowOf(id: string): TaskRow {
  return new TaskRow(newTask({ id }).message);
}

test('two ids of the tests have one hash, and an id that is not ASCII has none', () => {
  expect(hashOf('costarring')).toBe(hashOf('liquid'));
  expect(hashOf('declinate')).toBe(hashOf('macallums'));
  expect(hashOf('plain')).not.toBe(hashOf('liquid'));
  expect(hashOf('é')).toBeUndefined();
});

test('an index has the rows of a map after any additions and removals', () => {
  const id = fc.oneof(fc.constantFrom(...IDS), fc.nat({ max: 200 }).map(String));
  const actions = fc.array(fc.record({ id, isAdded: fc.boolean() }), { maxLength: 100 });
  fc.assert(
    fc.property(fc.uniqueArray(id, { maxLength: 200, size: 'max' }), actions, (packed, then) => {
      const rows = new RowIndex();
      const model = new Map<string, TaskRow>();
      rows.reserve(packed.length);
      for (const each of packed) {
        const row = rowOf(each);
        const hash = hashOf(each);
        if (hash === undefined || !rows.addPacked(row, hash)) rows.add(row);
        model.set(each, row);
      }
      for (const { id: each, isAdded } of then) {
        const row = model.get(each);
        if (isAdded === (row !== undefined)) continue;
        if (row !== undefined) rows.delete(row);
        else rows.add(rowOf(each));
        model.delete(each);
        if (isAdded) model.set(each, rows.get(each) as TaskRow);
      }
      expect(rows.size).toBe(model.size);
      expect(new Set(rows.values())).toEqual(new Set(model.values()));
      for (const each of [...IDS, ...packed]) expect(rows.get(each) === model.get(each)).toBe(true);
    }),
    propertyRuns(200),
  );
});

test('ids that were chosen to have hashes behind one another are found, in little time', () => {
  const rows = new RowIndex();
  const all = Array.from({ length: 20_000 }, (_, number) => rowOf(`task ${number}`));
  rows.reserve(all.length);
  for (const [at, row] of all.entries()) if (!rows.addPacked(row, at * 2 ** 16)) rows.add(row);
  expect(rows.size).toBe(all.length);
});

test('tasks of a folder are found by their ids after a reopen, whatever their hashes are', async () => {
  const dataPath = folderOfTest();
  let broker = await openFolder(dataPath);
  onTestFinished(() => broker.close());
  const ids = IDS.filter((id) => id !== '');
  for (const id of ids) await broker.enqueue(newTask({ id }));
  await broker.close();
  broker = await openFolder(dataPath);
  for (const id of ids) {
    expect((await broker.task(QUEUE, id)).message.id).toBe(id);
    await expect(broker.enqueue(newTask({ id }))).rejects.toMatchObject({ code: 'ERR_TASK_ID_CONFLICT' });
  }
  const { tasks } = await broker.scan(QUEUE, ['pending'], 100);
  expect(idsOf(tasks).sort()).toEqual(ids.sort());
  for (const id of ids) {
    await broker.change(QUEUE, { id }, 'delete');
    await broker.enqueue(newTask({ id }));
    checkBroker(broker);
  }
  await checkBrokerLog(broker);
});

test.each([10, 2_000])(
  'of two tasks with one id the later one is left if the removal of the first, of %i bytes, was in a damaged record',
  async (length) => {
    const dataPath = folderOfTest();
    const options = { durability: 'os', maxBytesPerFile: 2 ** 20 } as const;
    let broker = await openFolder(dataPath, options);
    onTestFinished(() => broker.close());
    await broker.enqueue(newTask({ id: 'twin', maxRetry: 1, payload: new Uint8Array(length) }));
    const [file] = readdirSync(dataPath).filter((name) => name.endsWith('.segment'));
    const path = `${dataPath}/${file}`;
    const start = readFileSync(path).length;
    await broker.change(QUEUE, { id: 'twin' }, 'delete');
    const end = readFileSync(path).length;
    await broker.enqueue(newTask({ id: 'twin', maxRetry: 2 }));
    await broker.close();
    const bytes = readFileSync(path);
    bytes[end - 1] = (bytes[end - 1] as number) ^ 1;
    expect(end).toBeGreaterThan(start);
    writeFileSync(path, bytes);
    const reasons: string[] = [];
    broker = await openFolder(dataPath, { onCorruption: ({ reason }) => reasons.push(reason) });
    expect(reasons).toEqual(['the checksum of a payload is wrong']);
    expect((await broker.task(QUEUE, 'twin')).message.maxRetry).toBe(2);
    expect((await broker.queueStats(QUEUE)).counts.pending).toBe(1);
    checkBroker(broker);
  },
);
