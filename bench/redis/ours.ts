import { Client, EmbeddedBroker, Server, Task, type Broker } from 'escapement/tasks';
import type { RedisAddress, RedisContestant } from './contestant.ts';
import { inProcess } from './in-process.ts';
import type { Payload } from './payload.ts';

export const OURS = 'escapement';
const TYPE = 'work';

/** As much as a program has to say. */
function openBroker(_redis: RedisAddress): Promise<Broker> {
  return EmbeddedBroker.open();
}

export const ours: RedisContestant = {
  name: OURS,
  role: 'ours',
  note: 'Client.enqueue, Client.enqueueMany; one Server.',
  open: inProcess(async (redis) => {
    const broker = await openBroker(redis);
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
