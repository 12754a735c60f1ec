import { Client, Server, Task } from 'escapement/tasks';
import { RedisBroker } from 'escapement/tasks/redis';
import type { RedisContestant } from './contestant.ts';
import { inProcess } from './in-process.ts';
import type { Payload } from './payload.ts';

export const OURS = 'escapement';
const TYPE = 'work';

export const ours: RedisContestant = {
  name: OURS,
  role: 'ours',
  note: 'RedisBroker; Client.enqueue, Client.enqueueMany; one Server.',
  open: inProcess(({ host, port }) => {
    const broker = new RedisBroker({ url: `redis://${host}:${port}` });
    const client = new Client({ broker });
    let server: Server | undefined;
    return {
      add: (payload) => client.enqueue(new Task(TYPE, payload)),
      addMany: async (payloads) => {
        const outcomes = await client.enqueueMany(payloads.map((payload) => new Task(TYPE, payload)));
        const refused = outcomes.find(({ status }) => status === 'rejected');
        if (refused !== undefined) throw new Error('a task was refused', { cause: refused });
      },
      work: async (concurrency, handle) => {
        server = new Server({ broker, concurrency });
        await server.start((task) => {
          handle(task.json<Payload>());
        });
      },
      close: async () => {
        await server?.shutdown();
        await broker.close();
      },
    };
  }),
};
