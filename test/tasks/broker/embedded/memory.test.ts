import { EmbeddedBroker } from 'escapement/tasks';
import { expect, onTestFinished, test } from 'vitest';
import { newTask } from '../../../conformance/broker/support.ts';
import { folderOfTest } from '../../../folder.ts';
import { heldBytes } from '../../../leak/collect.ts';

const PAYLOAD_BYTES = 20_000_000;

test('a large payload is not in memory when it is on the disk, also if nothing follows it', async () => {
  const dataPath = folderOfTest();
  const broker = await EmbeddedBroker.open({ dataPath, durability: 'os' });
  onTestFinished(async () => {
    await broker.close();
  });
  await broker.enqueue(newTask());
  const before = await heldBytes();
  await broker.enqueue(newTask({ payload: new Uint8Array(PAYLOAD_BYTES) }));
  const held = async (): Promise<number> => (await heldBytes()) - before;
  await expect.poll(held).toBeLessThan(PAYLOAD_BYTES / 4);
});
