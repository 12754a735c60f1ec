import { expect, test } from 'vitest';
import { runProgram } from '../run-program.ts';

test('both builds in one process: operations, timers, errors and the checker cross over', () => {
  const { stdout, stderr } = runProgram(`
    import { createRequire } from 'node:module';
    import { DelayedOperation, DelayedOperationPurgatory, EscapementError, ManualClock } from 'escapement';
    const require = createRequire(process.cwd() + '/x.js');
    const [cjs, { checkPurgatory }] = [require('escapement'), require('escapement/testing')];
    const scripted = (Base) => class extends Base {
      tryComplete() { return this.holds === true && this.forceComplete(); }
      onComplete(reason) { console.log(reason); }
      onExpiration() { console.log('onExpiration'); }
    };
    const [Ours, Theirs] = [scripted(DelayedOperation), scripted(cjs.DelayedOperation)];
    const clock = new ManualClock();
    const purgatory = new DelayedOperationPurgatory('test', { timer: new cjs.SystemTimer({ clock }) });
    purgatory.tryCompleteElseWatch(new Ours(10), ['x']);
    checkPurgatory(purgatory);
    clock.advance(10);
    const theirs = new Theirs(10);
    purgatory.tryCompleteElseWatch(theirs, ['x', 'y']);
    checkPurgatory(purgatory);
    theirs.holds = true;
    console.log(purgatory.watched, purgatory.checkAndComplete('y'), purgatory.watched);
    const closed = new cjs.DelayedOperationPurgatory('closed');
    closed.close();
    try { closed.tryCompleteElseWatch(theirs, ['x']); } catch (error) {
      console.log(error instanceof EscapementError, error.code);
    }
  `);
  expect(stderr).toBe('');
  expect(stdout.trim().split('\n')).toEqual([
    ...['expired', 'onExpiration'],
    ...['tried', '2 1 0'],
    'true ERR_PURGATORY_CLOSED',
  ]);
});
