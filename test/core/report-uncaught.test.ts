import { expect, it } from 'vitest';
import { runProgram } from '../run-program.ts';

it('throws in a turn of its own, after the code and the microtasks that were running', () => {
  const { stdout, status } = runProgram(`
    import { SystemTimer } from 'escapement';
    process.on('uncaughtException', (error) => console.log('uncaught', error.message));
    const timer = new SystemTimer({ autoStart: false });
    timer.schedule(0, () => { throw new Error('first'); }, 0);
    timer.schedule(0, () => console.log('sibling ran'), 0);
    timer.schedule(0, () => { throw new Error('second'); }, 0);
    console.log('ran', timer.poll());
    Promise.resolve().then(() => console.log('microtask'));
    timer.close();
  `);
  expect(stdout.trim().split('\n')).toEqual([
    'sibling ran',
    'ran 3',
    'microtask',
    'uncaught first',
    'uncaught second',
  ]);
  expect(status).toBe(0);
});
