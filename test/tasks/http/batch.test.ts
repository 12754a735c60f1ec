import { EmbeddedBroker, Inspector } from 'escapement/tasks';
import { expect, test } from 'vitest';
import { doEach } from '../../../src/tasks/http/task-routes.ts';

test('a batch on a broker in the process does not hold the event loop: the host has a turn between two pieces', async () => {
  await using broker = await EmbeddedBroker.open();
  const inspector = new Inspector({ broker });
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const ids = Array.from({ length: 5_000 }, (_, i) => `missing ${i}`);
  const outcome = await doEach(ids, (id) => inspector.deleteTask('default', id));
  isOver = true;
  expect(outcome).toEqual({ done: [], failed: ids });
  expect(turns).toBeGreaterThanOrEqual(5_000 / 50);
});
