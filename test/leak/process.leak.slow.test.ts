import { expect, test } from 'vitest';
import { type ProgramResult, runProgram } from '../run-program.ts';
import { programTests } from './program-tests.ts';

const MINUTES_MS = 600_000;

const TIMER = `
  import { SystemTimer, TimerTask } from 'escapement';
  const say = (line) => { console.log(line); };
  class Task extends TimerTask {
    constructor(delayMs, body) { super(delayMs); this.body = body; }
    run() { this.body(); }
  }
`;
const timerProgram = programTests(TIMER);
const runTimer = (program: string): ProgramResult => runProgram(TIMER + program);

timerProgram('a process ends by itself while its timers are idle, closed, without ref, or not started', [
  ...['dropped 10', 'ran', 'ERR_TIMER_CLOSED'],
])(`
  const idle = new SystemTimer();
  const task = new Task(${MINUTES_MS}, () => say('late'));
  idle.add(task);
  idle.cancel(idle.schedule(${MINUTES_MS}, say, 'late'));
  task.cancel();
  idle.schedule(1, say, 'ran');
  const before = new SystemTimer();
  before.unref();
  before.schedule(${MINUTES_MS}, say, 'late');
  const after = new SystemTimer();
  after.add(new Task(${MINUTES_MS}, () => say('late')));
  after.unref();
  after.schedule(${MINUTES_MS} / 2, say, 'late');
  const stopped = new SystemTimer({ autoStart: false });
  stopped.schedule(50, say, 'late');
  const closed = new SystemTimer();
  for (let i = 0; i < 10; i++) closed.add(new Task(${MINUTES_MS}, () => say('late')));
  closed.sleep(${MINUTES_MS}).catch((error) => idle.schedule(20, say, error.code));
  say('dropped ' + closed.close().length);
`);

timerProgram('a process stays alive while a timer has a task, and ends after it', [
  'waiting',
  'ran',
  'exit',
])(`
  const timer = new SystemTimer();
  timer.unref();
  timer.schedule(200, say, 'ran');
  timer.ref();
  process.on('exit', () => say('exit'));
  say('waiting');
`);

timerProgram('a process stays alive while a sleep is pending', ['slept'])(`
  const timer = new SystemTimer();
  say(await timer.sleep(100, 'slept'));
`);

test('an error without a handler ends the process, and its own stack is printed', () => {
  const { status, stderr, lines } = runTimer(`
  const timer = new SystemTimer();
  timer.schedule(0, function failingCallback() { throw new Error('nobody handles me'); }, undefined);
  timer.schedule(0, say, 'sibling');
  timer.schedule(${MINUTES_MS}, say, 'later');
`);
  expect([status, lines]).toEqual([1, ['sibling']]);
  expect(stderr).toContain('Error: nobody handles me');
  expect(stderr).toContain('failingCallback');
});

timerProgram('an error of the error handler is an uncaught exception', ['sibling', 'uncaught handler of a'])(`
  process.on('uncaughtException', (error) => say('uncaught ' + error.message));
  const timer = new SystemTimer({ onError: (error) => { throw new Error('handler of ' + error.message); } });
  timer.schedule(0, () => { throw new Error('a'); }, undefined);
  timer.schedule(0, say, 'sibling');
`);

timerProgram('an error of an executor is an uncaught exception, and the tasks run', [
  'ran',
  'uncaught executor',
])(`
  process.on('uncaughtException', (error) => say('uncaught ' + error.message));
  const timer = new SystemTimer({ executor: () => { throw new Error('executor'); } });
  timer.schedule(1, say, 'ran');
`);

timerProgram('no timer of a thousand runs early in real time', ['1000 ran, 0 early'])(`
  const timer = new SystemTimer();
  let early = 0, ran = 0;
  for (let i = 0; i < 1_000; i++) {
    const dueMs = performance.now() + i * 0.3;
    timer.schedule(i * 0.3, (due) => { ran++; if (performance.now() < due) early++; }, dueMs);
  }
  process.on('exit', () => say(ran + ' ran, ' + early + ' early'));
`);

const QUEUE = `
  import { DelayingQueue, RateLimitingQueue, WorkQueue, defaultControllerRateLimiter, parallelizeUntil } from 'escapement';
  const say = (line) => { console.log(line); };
  process.on('exit', () => say('exit'));
`;
const queueProgram = programTests(QUEUE);
const runQueue = (program: string): ProgramResult => runProgram(QUEUE + program);

queueProgram('a process ends by itself although a worker waits for items', ['a', 'exit'])(`
  const queue = new WorkQueue();
  queue.run((item) => say(item));
  await undefined;
  queue.add('a');
  queue.get().then(() => say('never'));
`);

queueProgram('a process stays alive while an item is delayed, and ends after it', ['waiting', 'a', 'exit'])(`
  const queue = new DelayingQueue();
  queue.addAfter('a', 100);
  queue.run((item) => say(item));
  say('waiting');
`);

queueProgram('a process ends by itself while items have an infinite delay, and once the queue is shut down', [
  'a,parked',
  'exit',
])(`
  const queue = new DelayingQueue();
  queue.addAfter('parked', Infinity);
  queue.addAfter('a', ${MINUTES_MS});
  say(queue.shutDown().join());
  const other = new DelayingQueue();
  other.addAfter('parked', Infinity);
`);

test('an aborted signal causes no unhandled rejection', () => {
  const { status, stderr, lines } = runQueue(`
  const queue = new WorkQueue({ maxSize: 1 });
  const controller = new AbortController();
  const { signal } = controller;
  const loop = async () => { for await (const lease of queue.leases({ signal })) lease.done(); };
  const all = [queue.get({ signal }), loop(), queue.run(() => undefined, { signal })];
  controller.abort(new Error('gave up'));
  for (const { status, reason } of await Promise.allSettled(all)) say(status + ' ' + reason?.message);
  await parallelizeUntil(3, 10, async (piece) => { throw new Error('piece ' + piece); })
    .catch((error) => say(error.errors.length));
`);
  expect([status, stderr]).toEqual([0, '']);
  expect(lines).toEqual(['rejected gave up', 'rejected gave up', 'fulfilled undefined', '3', 'exit']);
});

test('timers, errors, limiters and checkers of the two builds work together in one process', () => {
  const { status, stderr, lines } = runQueue(`
  const { createRequire } = await import('node:module');
  const { EscapementError, ItemExponentialFailureRateLimiter, ManualClock } = await import('escapement');
  const require = createRequire(process.cwd() + '/x.js');
  const [cjs, { checkQueue }] = [require('escapement'), require('escapement/testing')];
  const clock = new ManualClock();
  const limiter = new ItemExponentialFailureRateLimiter({ baseDelayMs: 10, maxDelayMs: 10 });
  const queue = new RateLimitingQueue(new cjs.MaxOfRateLimiter(limiter), { timer: new cjs.SystemTimer({ clock }) });
  queue.addRateLimited('a');
  checkQueue(queue);
  clock.advance(10);
  checkQueue(queue);
  say(queue.length + ' ' + queue.numRequeues('a'));
  try { new cjs.WorkQueue().done('a'); } catch (error) { say(error instanceof EscapementError && error.code); }
`);
  expect([status, stderr, lines]).toEqual([0, '', ['1 1', 'ERR_NOT_PROCESSING', 'exit']]);
});
