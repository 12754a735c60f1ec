import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RedisProcess } from '../../../redis/redis-process.ts';
import { runProgram } from '../../../run-program.ts';

/* Real time and real signals, against the built package: containers are killed ten seconds after SIGTERM. */

let redis: RedisProcess;

beforeEach(async () => {
  redis = await RedisProcess.start();
});
afterEach(() => redis.stop());

/** Runs something idle that Redis leaves, then SIGTERM. @returns from there to the end of the process, in milliseconds. */
function endWithoutRedis(signal: NodeJS.Signals, start: string): number {
  const { stdout, stderr, status } = runProgram(`
    import { Scheduler, Server, Task } from 'escapement/tasks';
    import { RedisBroker } from 'escapement/tasks/redis';
    const broker = new RedisBroker({ url: '${redis.url}' });
    const signalled = new Promise((resolve) => process.once('SIGTERM', resolve));
    setTimeout(() => process.kill(${redis.pid}, '${signal}'), 500);
    setTimeout(() => {
      const startMs = performance.now();
      process.on('exit', () => console.log(performance.now() - startMs));
      process.kill(process.pid, 'SIGTERM');
    }, 4_000);
    ${start}
    await broker.close();
  `);
  expect([stderr, status]).toEqual(['', 0]);
  return Number(stdout);
}

describe.each<[string, NodeJS.Signals]>([
  ['gone', 'SIGKILL'],
  ['silent', 'SIGSTOP'],
])('when Redis is %s', (_what, signal) => {
  it('an idle server ends within three seconds of SIGTERM', () => {
    const server = `await new Server({ broker, groupAggregator: () => new Task('t') }).run(() => undefined);`;
    expect(endWithoutRedis(signal, server)).toBeLessThan(3_000);
  });

  it('an idle scheduler ends within three seconds of its shutdown', () => {
    const scheduler = `
      const scheduler = new Scheduler({ broker });
      scheduler.register('@yearly', new Task('t'));
      await scheduler.start();
      await signalled;
      await scheduler.shutdown();
    `;
    expect(endWithoutRedis(signal, scheduler)).toBeLessThan(3_000);
  });
});
