import type { Broker } from 'escapement/tasks';
import { START_MS, type Bench } from './bench.ts';

const failure = { error: 'boom', isFailure: true };

/** Adds one task in each state to queue `default`, which is empty. Its id is that state. */
export async function addEveryState(
  { add, broker, lease }: Pick<Bench, 'add' | 'lease'> & { readonly broker: Broker },
  scheduledInMs: number,
): Promise<void> {
  await add('completed', { retentionMs: 60_000 });
  await add('retry');
  await add('archived');
  await add('active');
  const done = await lease();
  await broker.writeResult(done, Buffer.from('fine'));
  await broker.complete(done);
  await broker.retry(await lease(), failure, START_MS + 5_000);
  await broker.archive(await lease(), failure);
  await lease();
  await add('pending');
  await add('scheduled', { processInMs: scheduledInMs });
  await add('aggregating', { group: 'g' });
}
