import { describe, expect, test } from 'vitest';
import { runProgram } from '../run-program.ts';

/** Runs a program in a process of its own, in real time; one that does not end is killed, and has no status. */
function run(body: string): { readonly status: number | null; readonly lines: string[] } {
  const { stdout, status } = runProgram(`
    import { Client, EmbeddedBroker, Task } from 'escapement/tasks';
    const say = (line) => { console.log(line); };
    process.on('exit', () => say('exit'));
    process.on('uncaughtException', (error) => say('uncaught ' + error.message));
    const broker = await EmbeddedBroker.open();
    const client = new Client({ broker });
    const task = new Task('t', {}, { queue: 'q' });
    ${body}
  `);
  return { status, lines: stdout.split('\n').filter((line) => line !== '') };
}

describe('in real time, a process', () => {
  test('ends by itself although tasks wait, if nobody would run them', () => {
    const { status, lines } = run(`
      await client.enqueue(task, { processInMs: 600_000 });
      await client.enqueue(task, { retentionMs: 600_000 });
      const [leased] = await broker.dequeue('q', 1, 600_000);
      await broker.complete(leased);
      await client.enqueue(task);
      await broker.dequeue('q', 1, 600_000);
      const subscription = await broker.subscribe({});
      await subscription.close();
    `);
    expect([status, lines]).toEqual([0, ['exit']]);
  });

  test('stays alive while a task waits for somebody who has subscribed', () => {
    const { status, lines } = run(`
      const subscription = await broker.subscribe({ work(queue) { say('work'); void subscription.close(); } });
      await client.enqueue(task, { processInMs: 100 });
      await client.enqueue(task, { processInMs: 600_000 });
      say('waiting');
    `);
    expect([status, lines]).toEqual([0, ['waiting', 'work', 'exit']]);
  });

  test('ends by itself once the broker is closed', () => {
    const { status, lines } = run(`
      await broker.subscribe({ closed() { say('closed'); } });
      await client.enqueue(task, { processInMs: 600_000 });
      await broker.close();
    `);
    expect([status, lines]).toEqual([0, ['closed', 'exit']]);
  });

  test('hears of a listener that throws, and so do the others of what there is', () => {
    const { status, lines } = run(`
      const fail = (what) => () => { throw new Error(what); };
      await broker.subscribe({ work: fail('work'), settled: fail('settled'), cancel: fail('cancel'), closed: fail('closed') });
      await broker.subscribe({ work: () => say('told'), cancel: () => true });
      await broker.announceServer(() => ({ id: 'good' }), 1);
      let isBad = false;
      await broker.announceServer(() => { if (isBad) throw new Error('read'); return { id: 'bad' }; }, 1);
      isBad = true;
      await client.enqueue(task);
      say('cancelled ' + await broker.cancel({ taskId: 'a', queue: 'q', outcome: 'retry' }, 1));
      await broker.change('q', { state: 'pending' }, 'delete');
      say('servers ' + (await broker.servers()).length);
      await broker.close();
    `);
    expect(status).toBe(0);
    expect(lines.slice(0, 3)).toEqual(['told', 'cancelled true', 'servers 1']);
    const uncaught = ['cancel', 'closed', 'read', 'settled', 'work'].map((what) => `uncaught ${what}`);
    expect(lines.slice(3).sort()).toEqual(['exit', ...uncaught]);
  });
});
