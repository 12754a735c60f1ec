import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { runProgram } from '../run-program.ts';

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly sideEffects: boolean;
  readonly files: string[];
  readonly engines: { node: string };
  readonly exports: Record<string, unknown>;
  readonly dependencies?: Record<string, string>;
  readonly peerDependencies?: Record<string, string>;
}

const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as Manifest;

const EXPORTS = {
  escapement: [
    'AsyncDelayedOperation',
    'DelayedOperation',
    'DelayedOperationPurgatory',
    'EscapementError',
    'ManualClock',
    'SystemTimer',
    'TimerTask',
    'systemClock',
  ],
  'escapement/timers': [
    'clearImmediate',
    'clearInterval',
    'clearTimeout',
    'promises',
    'setImmediate',
    'setInterval',
    'setTimeout',
  ],
  'escapement/timers/promises': ['scheduler', 'setImmediate', 'setInterval', 'setTimeout'],
  'escapement/testing': ['ManualClock', 'checkPurgatory', 'checkTimer'],
};

describe('the package', () => {
  it('is what its card says: no run-time dependency, no side effects, only dist, Node 20', () => {
    expect(manifest).toMatchObject({
      name: 'escapement',
      sideEffects: false,
      files: ['dist'],
      engines: { node: '>=20' },
    });
    expect(manifest.dependencies).toBeUndefined();
  });

  it.each(Object.entries(EXPORTS))('%s exports the same names to import and to require', (subpath, names) => {
    const imported = runProgram(
      `import * as m from '${subpath}'; console.log(JSON.stringify(Object.keys(m).sort()))`,
    );
    expect(JSON.parse(imported.stdout)).toEqual(names);
    const source = `console.log(JSON.stringify(Object.keys(require('${subpath}')).sort()))`;
    const required = runProgram(source, { type: 'commonjs' });
    expect(JSON.parse(required.stdout)).toEqual(names);
  });

  it('loads nothing but itself', () => {
    const { stdout } = runProgram(
      `require('escapement'); require('escapement/testing');
       console.log(JSON.stringify(Object.keys(require.cache).filter((path) => path.includes('node_modules'))))`,
      { type: 'commonjs' },
    );
    expect(JSON.parse(stdout)).toEqual([]);
  });

  it('has one copy of each class per module format', () => {
    const source = `
      import { ManualClock } from 'escapement';
      import { ManualClock as Same } from 'escapement/testing';
      console.log(ManualClock === Same)`;
    expect(runProgram(source).stdout.trim()).toBe('true');
    const required = `console.log(require('escapement').ManualClock === require('escapement/testing').ManualClock)`;
    expect(runProgram(required, { type: 'commonjs' }).stdout.trim()).toBe('true');
  });

  it('works when both builds are loaded: errors, tasks and the checker cross over', () => {
    const { stdout, stderr } = runProgram(`
      import { createRequire } from 'node:module';
      import { SystemTimer, TimerTask, EscapementError, ManualClock } from 'escapement';
      import { checkTimer } from 'escapement/testing';
      const cjs = createRequire(process.cwd() + '/x.js')('escapement');
      class Mine extends TimerTask { run() { console.log('ran', this instanceof cjs.TimerTask); } }
      const clock = new ManualClock();
      const theirs = new cjs.SystemTimer({ clock });
      const task = new Mine(10);
      theirs.add(task);
      const ours = new SystemTimer({ clock });
      ours.add(new (class extends cjs.TimerTask { run() { console.log('ran theirs'); } })(10));
      checkTimer(theirs);
      checkTimer(ours);
      const moved = new Mine(20);
      ours.add(moved);
      theirs.add(moved);
      console.log(ours.size, theirs.size, moved.cancel(), theirs.size);
      clock.advance(10);
      theirs.close();
      try { theirs.add(task); } catch (error) { console.log(error instanceof EscapementError, error.code); }
    `);
    expect(stderr).toBe('');
    expect(stdout.trim().split('\n')).toEqual([
      '1 2 true 1',
      'ran false',
      'ran theirs',
      'true ERR_TIMER_CLOSED',
    ]);
  });

  it('works when both builds are loaded: operations and the checker cross over', () => {
    const { stdout, stderr } = runProgram(`
      import { createRequire } from 'node:module';
      import { DelayedOperation, DelayedOperationPurgatory } from 'escapement';
      import { checkPurgatory } from 'escapement/testing';
      const cjs = createRequire(process.cwd() + '/x.js')('escapement');
      const define = (Base) => class extends Base {
        holds = false;
        constructor() { super(60_000); }
        tryComplete() { return this.holds && this.forceComplete(); }
        onComplete(reason) { console.log(reason); }
        onExpiration() {}
      };
      for (const [Purgatory, Base] of [
        [DelayedOperationPurgatory, cjs.DelayedOperation],
        [cjs.DelayedOperationPurgatory, DelayedOperation],
      ]) {
        const purgatory = new Purgatory('crossing');
        const operation = new (define(Base))();
        purgatory.tryCompleteElseWatch(operation, ['a', 'b']);
        checkPurgatory(purgatory);
        operation.holds = true;
        console.log(purgatory.checkAndComplete('b'), purgatory.watched, purgatory.numDelayed);
        purgatory.close();
      }
    `);
    expect(stderr).toBe('');
    expect(stdout.trim().split('\n')).toEqual(['tried', '1 0 0', 'tried', '1 0 0']);
  });
});
