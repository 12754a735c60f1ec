import { writeSync } from 'node:fs';
import { Client, EmbeddedBroker, Server, Task } from 'escapement/tasks';

/*
 * Enqueues and runs tasks until it is killed, and prints what it has been promised, a line each: `call 7` before task 7 is
 * enqueued, `enqueued 7` when that has settled, `run 7` when its handler starts, `completed 7` when `complete` has settled.
 */

const [dataPath = '', durability, first] = process.argv.slice(2);
let next = Number(first);

/** The whole line at once: it is in the pipe, whatever happens then. */
function print(line: string): void {
  const bytes = Buffer.from(`${line}\n`);
  for (let done = 0; done < bytes.length;) {
    try {
      done += writeSync(1, bytes.subarray(done));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    }
  }
}

const broker = await EmbeddedBroker.open({
  ...{ dataPath, durability: durability as 'always' | 'os', maxBytesPerFile: 16_384 },
  onCorruption: ({ reason }) => {
    print(`damage ${reason}`);
  },
});
const complete = broker.complete.bind(broker);
broker.complete = async (task) => {
  await complete(task);
  print(`completed ${task.message.id}`);
};
const client = new Client({ broker });
const server = new Server({ broker, concurrency: 20, maxRecoveries: 1_000 });
await server.start(async (_task, { taskId }) => {
  print(`run ${taskId}`);
  if (Math.random() < 0.3) await new Promise((resolve) => setTimeout(resolve, Math.random() * 20));
});

async function produce(): Promise<void> {
  for (;;) {
    const id = next++;
    print(`call ${id}`);
    const random = Math.random();
    const bytes = random < 0.01 ? 40_000 : random < 0.05 ? 3_000 : 20; // the largest have a file of their own
    const payload = Buffer.alloc(bytes, String(id));
    await client.enqueue(new Task('t', payload, { taskId: `${id}` }));
    print(`enqueued ${id}`);
  }
}
await Promise.all(Array.from({ length: 10 }, produce));
