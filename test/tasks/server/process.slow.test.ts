import { describe, expect, it } from 'vitest';
import { runProgram } from '../../run-program.ts';

/* Real time, in processes of their own, against the built package. */

const PREAMBLE = `
  import { once } from 'node:events';
  import { Client, EmbeddedBroker, Server, Task } from 'escapement/tasks';
  const broker = await EmbeddedBroker.open();
  const client = new Client({ broker });
  const say = (...words) => console.log(...words);
  const listeners = () => ['SIGTERM', 'SIGINT', 'SIGTSTP'].map((signal) => process.listenerCount(signal)).join();
`;

function run(source: string): string[] {
  const { stdout, stderr, status } = runProgram(PREAMBLE + source);
  expect([stderr, status]).toEqual(['', 0]);
  return stdout.trim().split('\n');
}

describe('run', () => {
  it.each(['SIGTERM', 'SIGINT'])(
    'run ends at %s when running tasks are done, and leaves no listener',
    (signal) => {
      const lines = run(`
        const server = new Server({ broker, concurrency: 1 });
        await client.enqueueMany([new Task('first'), new Task('second')]);
        server.on('completed', ({ type }) => say('completed', type));
        await server.run(async (task) => {
          say('started', task.type, listeners());
          const received = once(process, '${signal}'); // after the server has received it
          process.kill(process.pid, '${signal}');
          await received;
          await new Promise(setImmediate);
        });
        say(server.status, listeners());
        say((await broker.queueStats('default')).counts.pending);
      `);
      expect(lines).toEqual(['started first 1,1,1', 'completed first', 'closed 0,0,0', '1']);
    },
  );

  it.skipIf(process.platform === 'win32')(
    'run takes nothing more at SIGTSTP, and goes on until SIGTERM',
    () => {
      const lines = run(`
        const server = new Server({ broker, concurrency: 1 });
        setTimeout(() => process.kill(process.pid, 'SIGTSTP'), 20);
        const stopped = setInterval(async () => {
          if (server.status !== 'stopped') return;
          clearInterval(stopped);
          await client.enqueue(new Task('late'));
          setTimeout(() => process.kill(process.pid, 'SIGTERM'), 50);
        }, 5);
        await server.run((task) => say(task.type));
        say(server.status, (await broker.queueStats('default')).counts.pending);
      `);
      expect(lines).toEqual(['closed 1']);
    },
  );
});

it('the process stays alive while a server is active, and ends after its shutdown', () => {
  const lines = run(`
        const server = new Server({ broker });
        const timeout = setTimeout(async () => {
          say('still here');
          await server.shutdown();
        }, 100);
        timeout.unref();
        await server.start(() => undefined);
      `);
  expect(lines).toEqual(['still here']);
});

it.each([10, 400])('a process that was blocked keeps its tasks (%d ms after a renewal)', (phaseMs) => {
  const lines = run(`
        const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
        const ended = [];
        const servers = ['waits', 'blocks'].map((queue) => new Server({ broker, leaseMs: 1_000, queues: { [queue]: 1 } }));
        for (const server of servers) {
          for (const event of ['completed', 'lost', 'retried']) server.on(event, ({ type }) => ended.push(event + ' ' + type));
          await server.start(async ({ type }) => {
            if (type === 'waits') return sleep(1_900);
            Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_500);
          });
        }
        await client.enqueue(new Task('waits', null, { queue: 'waits' }));
        await sleep(${phaseMs});
        await client.enqueue(new Task('blocks', null, { queue: 'blocks' }));
        while (ended.length < 2) await sleep(20);
        await Promise.all(servers.map((server) => server.shutdown()));
        ended.forEach((line) => say(line));
      `);
  expect(lines.sort()).toEqual(['completed blocks', 'completed waits']);
});

it('an error of a user function is an uncaught exception in a turn of its own, and does not stop the server', () => {
  const lines = run(`
      const uncaught = [];
      process.on('uncaughtException', (error) => uncaught.push(error.message));
      const fail = (what) => () => { throw new Error(what); };
      const server = new Server({
        broker,
        isFailure: fail('isFailure'),
        retryDelayMs: fail('retryDelayMs'),
        errorHandler: fail('errorHandler'),
      });
      server.on('started', fail('listener'));
      await server.start(fail('handler'));
      const { id } = await client.enqueue(new Task('job'));
      while (uncaught.length < 4) await new Promise((resolve) => setTimeout(resolve, 5));
      await server.shutdown();
      const { state, message } = await broker.task('default', id);
      say(uncaught.sort().join(' '));
      say(state, message.retried, message.lastError);
    `);
  expect(lines).toEqual(['errorHandler isFailure listener retryDelayMs', 'retry 1 handler']);
});
