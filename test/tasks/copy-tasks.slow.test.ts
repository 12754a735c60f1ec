import { join } from 'node:path';
import { Client, copyTasks, EmbeddedBroker, Task } from 'escapement/tasks';
import { expect, test } from 'vitest';
import { folderOfTest } from '../folder.ts';

test('a dump may have more characters in tasks that are read together than a string can have', async () => {
  const path = join(folderOfTest(), 'jobs.jsonl');
  await using from = await EmbeddedBroker.open();
  const client = new Client({ broker: from });
  for (let n = 0; n < 200; n++) await client.enqueue(new Task('large', new Uint8Array(2_097_152)));
  expect(await copyTasks(from, path)).toMatchObject({ tasks: 200 });
  await using to = await EmbeddedBroker.open();
  expect(await copyTasks(path, to)).toMatchObject({ added: 200 });
});
