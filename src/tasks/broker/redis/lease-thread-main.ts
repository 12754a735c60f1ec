import { parentPort, workerData, type MessagePort } from 'node:worker_threads';
import { optionsOfRoute } from './client.ts';
import { RedisConnection } from './connection.ts';
import { LeaseRenewer } from './lease-renewer.ts';
import {
  LeaseBoard,
  type FromLeaseThread,
  type LeaseThreadData,
  type ToLeaseThread,
} from './lease-thread.ts';

/* The program of the thread that lease-thread.ts starts: importing this file runs it. `process.exit` ends the thread alone. */

const port = parentPort as MessagePort;
const { cells, queues, leaseMs, route } = workerData as LeaseThreadData;

const renewer = new LeaseRenewer({
  board: new LeaseBoard(cells),
  queues,
  leaseMs,
  open: () => {
    const connection = new RedisConnection(optionsOfRoute(route));
    return { run: (script, keys, args) => connection.run((client) => script.run(client, keys, args)) };
  },
  onError: (error) => {
    const { code, message, cause } = error as FromLeaseThread;
    port.postMessage({ code, message, cause } satisfies FromLeaseThread);
  },
});

port.on('message', (message: ToLeaseThread) => {
  if (message === 'end') process.exit();
  else renewer.addLongId(message);
});
renewer.start();
