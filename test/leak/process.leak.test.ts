import { expect, test } from 'vitest';
import { type ProgramResult, runProgram } from '../run-program.ts';
import { programTests } from './program-tests.ts';

const BROKER = `
  import { Client, EmbeddedBroker, Task } from 'escapement/tasks';
  const say = (line) => { console.log(line); };
  process.on('exit', () => say('exit'));
  process.on('uncaughtException', (error) => say('uncaught ' + error.message));
  const broker = await EmbeddedBroker.open();
  const client = new Client({ broker });
  const task = new Task('t', {}, { queue: 'q' });
`;
const brokerProgram = programTests(BROKER);
const runBroker = (program: string): ProgramResult => runProgram(BROKER + program);

brokerProgram(
  'a process ends by itself although tasks are scheduled, if its brokers have no subscription or are closed',
  [...['closed', 'exit']],
)(`
  const closed = await EmbeddedBroker.open();
  await closed.subscribe({ closed() { say('closed'); } });
  await new Client({ broker: closed }).enqueue(task, { processInMs: 600_000 });
  await closed.close();
  await client.enqueue(task, { processInMs: 600_000 });
  await client.enqueue(task, { retentionMs: 600_000 });
  const [leased] = await broker.dequeue('q', 1, 600_000);
  await broker.complete(leased);
  await client.enqueue(task);
  await broker.dequeue('q', 1, 600_000);
  const subscription = await broker.subscribe({});
  await subscription.close();
`);

brokerProgram('a process stays alive while a task is scheduled and its broker has a subscription', [
  'waiting',
  'work',
  'exit',
])(`
  const subscription = await broker.subscribe({ work(queue) { say('work'); void subscription.close(); } });
  await client.enqueue(task, { processInMs: 100 });
  await client.enqueue(task, { processInMs: 600_000 });
  say('waiting');
`);

test('an error of a listener is an uncaught exception, and the other listeners are called', () => {
  const { status, lines } = runBroker(`
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

const PURGATORY = `
  import { AsyncDelayedOperation, DelayedOperation, DelayedOperationPurgatory } from 'escapement';
  const say = (line) => { console.log(line); };
  class Operation extends DelayedOperation {
    tryComplete() { return false; }
    onComplete(reason) { say(reason); }
    onExpiration() {}
  }
  const purgatory = new DelayedOperationPurgatory('test');
  process.on('exit', () => say('exit'));
`;
const purgatoryProgram = programTests(PURGATORY);
const runPurgatory = (program: string): ProgramResult => runProgram(PURGATORY + program);

const MINUTES_MS = 600_000;

purgatoryProgram(
  'a process ends by itself while no operation has a timeout, and once its purgatory is closed',
  [...['forced', 'waiting 1', 'closed', 'ERR_PURGATORY_CLOSED', 'exit']],
)(`
  const operation = new Operation(${MINUTES_MS});
  purgatory.tryCompleteElseWatch(operation, ['x']);
  operation.forceComplete();
  purgatory.tryCompleteElseWatch(new Operation(Infinity), ['x']);
  say('waiting ' + purgatory.watched);
  const closed = new DelayedOperationPurgatory('closed');
  closed.tryCompleteElseWatch(new Operation(${MINUTES_MS}), ['x']);
  closed.wait(['x'], () => undefined, { timeoutMs: ${MINUTES_MS} }).catch((error) => say(error.code));
  closed.close();
`);

purgatoryProgram('a process stays alive while an operation has a timeout, and ends after it', [
  'waiting',
  'expired',
  'exit',
])(`
  purgatory.tryCompleteElseWatch(new Operation(100), ['x']);
  say('waiting');
`);

test('a check that rejects late causes no unhandled rejection', () => {
  const { status, lines, stderr } = runPurgatory(`
  const checks = [];
  const check = () => new Promise((_, reject) => checks.push(reject));
  class Remote extends AsyncDelayedOperation {
    tryCompleteAsync() { return check(); }
    onComplete(reason) { say(reason); }
    onExpiration() {}
  }
  const quiet = new DelayedOperationPurgatory('quiet', { onError: (error) => say(error.message) });
  quiet.tryCompleteElseWatch(new Remote(10), ['x']);
  await quiet.wait(['x'], check, { timeoutMs: 10 }).catch((error) => say(error.code));
  const signal = AbortSignal.timeout(10);
  await quiet.wait(['x'], check, { timeoutMs: ${MINUTES_MS}, signal }).catch((error) => say(error.name));
  for (const reject of checks) reject(new Error('late'));
`);
  expect([status, stderr]).toEqual([0, '']);
  expect(lines.toSorted()).toEqual(['ERR_OPERATION_EXPIRED', 'TimeoutError', 'exit', 'expired', 'late']);
});

purgatoryProgram('an error of an asynchronous operation without a purgatory is an uncaught exception', [
  'tried',
  'uncaught check',
  'uncaught onComplete',
  'exit',
])(`
  process.on('uncaughtException', (error) => say('uncaught ' + error.message));
  class Remote extends AsyncDelayedOperation {
    checks = 0;
    async tryCompleteAsync() {
      if (++this.checks === 1) throw new Error('check');
      return true;
    }
    onComplete(reason) { say(reason); throw new Error('onComplete'); }
    onExpiration() {}
  }
  const operation = new Remote(10);
  for (let i = 0; i < 2; i++) operation.maybeTryComplete();
`);
