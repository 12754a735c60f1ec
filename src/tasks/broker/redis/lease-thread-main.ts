import { parentPort, workerData, type MessagePort } from 'node:worker_threads';
import { LeaseBoard } from './lease-board.ts';
import { LeaseRenewer } from './lease-renewer.ts';
import { connect } from './lease-route.ts';
import type { FromLeaseThread, LeaseThreadData, ToLeaseThread } from './lease-thread.ts';
import type { RedisAccess } from './redis-access.ts';

/* What the thread of lease-thread.ts runs: a program of its own. */

const port = parentPort as MessagePort;
const { cells, queues, leaseMs, route } = workerData as LeaseThreadData;

function open(): Pick<RedisAccess, 'run'> {
  const connection = connect(route);
  return {
    run: (script, keys, args) =>
      connection.run('RedisBroker.leaseHolder', (client) => script.run(client, keys, args)),
  };
}

const renewer = new LeaseRenewer({
  ...{ queues, leaseMs, open },
  board: new LeaseBoard(cells),
  onError: (error) => {
    const message: FromLeaseThread = { error };
    port.postMessage(message);
  },
});

port.on('message', (message: ToLeaseThread) => {
  if (message === 'wake') renewer.wake();
  else renewer.tell(message);
});
renewer.wake();
