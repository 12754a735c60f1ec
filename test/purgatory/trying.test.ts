import { describe, expect } from 'vitest';
import { Fixture, type TestOperation, test } from './support/fixture.ts';

describe('tryCompleteElseWatch: try once; register under every key; try again; then start the timeout', () => {
  test('an operation whose condition does not hold is tried exactly twice', ({ fixture }) => {
    const operation = fixture.operation('a', { delayMs: 10 });
    expect(fixture.purgatory.tryCompleteElseWatch(operation, ['x', 'y', 'z'])).toBe(false);
    expect(operation.tries).toBe(2);
    expect(fixture.gauges()).toEqual([3, 1, 3, 1]);
  });

  test('an operation whose condition holds is tried once, and not watched', ({ fixture }) => {
    const operation = fixture.operation('a', { delayMs: 10, holds: true });
    expect(fixture.purgatory.tryCompleteElseWatch(operation, ['x', 'y', 'z'])).toBe(true);
    expect(operation.tries).toBe(1);
    expect(fixture.log).toEqual(['a tried']);
    expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
  });

  test('the first try comes before the operation is watched, the second one after, and both before the timeout', () => {
    const fixture = new Fixture();
    const seen: unknown[] = [];
    fixture.watch('a', 'xyz', { delayMs: 10, onTry: () => seen.push(fixture.gauges()) });
    expect(seen).toEqual([
      [0, 0, 0, 0],
      [3, 0, 3, 0],
    ]);
  });

  test('an operation that the second try completes leaves nothing behind', ({ fixture }) => {
    const operation = fixture.operation('a', {
      delayMs: 10,
      onTry: (self) => {
        self.holds = self.tries === 2;
      },
    });
    expect(fixture.purgatory.tryCompleteElseWatch(operation, ['x', 'y'])).toBe(true);
    expect(fixture.log).toEqual(['a tried']);
    expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
  });

  test.each([1, 2])(
    'an operation that is forced from inside try %d has completed, and its timeout never starts',
    (which) => {
      const fixture = new Fixture();
      const operation = fixture.operation('a', {
        delayMs: 10,
        onTry: (self) => {
          if (self.tries === which) expect(self.forceComplete()).toBe(true);
        },
      });
      expect(fixture.purgatory.tryCompleteElseWatch(operation, ['x'])).toBe(true);
      expect([operation.tries, operation.pending]).toEqual([which, false]);
      expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
    },
  );

  test('an operation that is cancelled with its key from inside the second try is not pending', () => {
    const fixture = new Fixture();
    const operation: TestOperation = fixture.operation('a', {
      delayMs: 10,
      onTry: () => {
        fixture.purgatory.cancelForKey('y');
      },
    });
    expect(fixture.purgatory.tryCompleteElseWatch(operation, ['x', 'y'])).toBe(false);
    fixture.clock.advance(100);
    expect([operation.isCompleted, operation.pending, fixture.log]).toEqual([false, false, []]);
    expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
  });

  test('a cancel from inside the second try does not prevent the timeout, which starts later', () => {
    const fixture = new Fixture();
    const operation = fixture.watch('a', 'x', {
      delayMs: 10,
      onTry: (self) => expect(self.cancel()).toBe(false),
    });
    expect(operation.pending).toBe(true);
    expect(fixture.gauges()).toEqual([1, 1, 1, 1]);
  });

  test('time that passes during the tries does not count for the delay', ({ fixture }) => {
    fixture.watch('a', 'x', {
      delayMs: 10,
      onTry: () => fixture.clock.advance(50),
    });
    fixture.clock.advance(9);
    expect(fixture.log).toEqual([]);
    fixture.clock.advance(1);
    expect(fixture.log).toEqual(['a expired', 'a onExpiration']);
  });

  test('tryCompleteElseWatch ignores an operation that has completed', ({ fixture }) => {
    const operation = fixture.operation('a');
    operation.forceComplete();
    expect(fixture.purgatory.tryCompleteElseWatch(operation, ['x'])).toBe(true);
    expect([operation.tries, fixture.log]).toEqual([0, ['a forced']]);
    expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
  });

  test('tryCompleteElseWatch may be called from inside a try or an onComplete of another operation', () => {
    const fixture = new Fixture();
    fixture.watch('a', 'x', {
      onTry: (self) => {
        if (self.tries === 1) fixture.watch('b', 'x', { delayMs: 5 });
      },
      onComplete: () => fixture.watch('c', 'x', { delayMs: 5 }),
    });
    expect(fixture.gauges()).toEqual([2, 1, 1, 1]);
    fixture.purgatory.checkAndComplete('x');
    fixture.clock.advance(5);
    expect(fixture.log).toEqual(['b expired', 'b onExpiration']);
  });
});

type Path = (fixture: Fixture, operation: TestOperation) => void;

/** Every way out of a purgatory, and the reason that onComplete is told. */
const PATHS: readonly (readonly [path: string, reason: string, take: Path])[] = [
  [
    'checked',
    'tried',
    ({ purgatory }, operation) => {
      operation.holds = true;
      expect(purgatory.checkAndComplete('y')).toBe(1);
    },
  ],
  [
    'checked by hand',
    'tried',
    (_, operation) => {
      operation.holds = true;
      expect(operation.maybeTryComplete()).toBe(true);
    },
  ],
  ['forced', 'forced', (_, operation) => expect(operation.forceComplete()).toBe(true)],
  ['expired', 'expired', ({ clock }) => clock.advance(10)],
  ['closed', 'closed', ({ purgatory }, operation) => expect(purgatory.close()).toEqual([operation])],
];

describe('completion by any path takes the operation off every key and off the timer before onComplete runs', () => {
  test.each(PATHS)(
    'completion removes an operation from every key and from the timer before onComplete: %s',
    (_, reason, take) => {
      const fixture = new Fixture();
      const seen: unknown[] = [];
      const operation = fixture.watch('a', 'xyz', {
        delayMs: 10,
        onComplete: (self) => seen.push(fixture.gauges(), self.pending, self.isCompleted),
      });
      expect(fixture.gauges()).toEqual([3, 1, 3, 1]);
      take(fixture, operation);
      expect(fixture.take()[0]).toBe(`a ${reason}`);
      expect(seen).toEqual([[0, 0, 0, 0], false, true]);
      expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
    },
  );

  test.each(PATHS)('an operation that has completed stays completed: %s', (_, __, take) => {
    const fixture = new Fixture();
    const operation = fixture.watch('a', 'xyz', { delayMs: 10 });
    take(fixture, operation);
    fixture.take();
    fixture.clock.advance(100);
    expect(operation.forceComplete() || operation.maybeTryComplete() || operation.cancel()).toBe(false);
    operation.run();
    expect(fixture.purgatory.checkAndComplete('x')).toBe(0);
    expect(fixture.purgatory.cancelForKey('x')).toEqual([]);
    expect(fixture.log).toEqual([]);
  });

  test.each(PATHS.slice(0, 4))('%s: its neighbours stay where they were', (_, __, take) => {
    const fixture = new Fixture();
    const neighbours = ['b', 'c'].map((name) => fixture.watch(name, 'xyz', { delayMs: 100 }));
    const operation = fixture.watch('a', 'xyz', { delayMs: 10 });
    const last = fixture.watch('d', 'zw', { delayMs: 100 });
    take(fixture, operation);
    expect(fixture.gauges()).toEqual([8, 3, 4, 3]);
    expect(fixture.purgatory.close()).toEqual([...neighbours, last]);
  });

  test('onExpiration runs after onComplete, and only after a timeout', () => {
    for (const [path, reason, take] of PATHS) {
      const fixture = new Fixture();
      take(fixture, fixture.watch('a', 'xyz', { delayMs: 10 }));
      expect(fixture.log).toEqual(path === 'expired' ? ['a expired', 'a onExpiration'] : [`a ${reason}`]);
    }
  });

  test('an operation may be forced from inside the check or the completion of another', ({ fixture }) => {
    const b = fixture.operation('b');
    const c = fixture.operation('c');
    fixture.watch('a', 'x', {
      onTry: (self) => {
        if (self.tries === 3) self.holds = b.forceComplete();
      },
      onComplete: () => c.forceComplete(),
    });
    for (const operation of [b, c]) fixture.purgatory.tryCompleteElseWatch(operation, ['x', 'y']);
    expect(fixture.purgatory.checkAndComplete('x')).toBe(1);
    expect(fixture.log).toEqual(['b forced', 'a tried', 'c forced']);
    expect([b.tries, c.tries]).toEqual([2, 2]);
    expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
  });
});

describe('cancelForKey takes them off every key and off the timer; they never complete', () => {
  test('cancelForKey returns the operations of a key in watch order, and leaves the others', () => {
    const fixture = new Fixture();
    const [a, b, c] = ['xy', 'y', 'zx'].map((keys, i) =>
      fixture.watch('abc'.charAt(i), keys, { delayMs: 10 }),
    );
    expect(fixture.purgatory.cancelForKey('x')).toEqual([a, c]);
    expect(fixture.gauges()).toEqual([1, 1, 1, 1]);
    fixture.clock.advance(100);
    expect(fixture.log).toEqual(['b expired', 'b onExpiration']);
    expect([a, b, c].map((operation) => operation?.isCompleted)).toEqual([false, true, false]);
  });

  test('cancelForKey of an unwatched key returns an empty array', ({ fixture }) => {
    fixture.watch('a', 'x');
    expect(fixture.purgatory.cancelForKey('y')).toEqual([]);
    expect(fixture.gauges()).toEqual([1, 0, 1, 0]);
  });

  test('an operation that cancelForKey returned completes only if it is forced or watched again', () => {
    const [here, elsewhere] = [new Fixture(), new Fixture()];
    const [a, b, c] = ['a', 'b', 'c'].map((name) => here.watch(name, 'xy', { delayMs: 10 })) as [
      TestOperation,
      TestOperation,
      TestOperation,
    ];
    here.purgatory.cancelForKey('y');
    expect(a.forceComplete()).toBe(true);
    expect(here.purgatory.tryCompleteElseWatch(b, ['z'])).toBe(false);
    expect(elsewhere.purgatory.tryCompleteElseWatch(c, ['x'])).toBe(false);
    expect([here.gauges(), elsewhere.gauges()]).toEqual([
      [1, 1, 1, 1],
      [1, 1, 1, 1],
    ]);
    here.clock.advance(10);
    expect(here.take()).toEqual(['a forced', 'b expired', 'b onExpiration']);
  });

  test('cancelForKey from inside a check of the same key prevents the remaining checks', ({ fixture }) => {
    fixture.watch('a', 'x', {
      onTry: (self) => {
        if (self.tries === 3) fixture.purgatory.cancelForKey('y');
      },
    });
    const b = fixture.watch('b', 'xy');
    const c = fixture.watch('c', 'x');
    const d = fixture.watch('d', 'yx');
    fixture.purgatory.checkAndComplete('x');
    expect([b.tries, c.tries, d.tries]).toEqual([2, 3, 2]);
    expect(fixture.gauges()).toEqual([2, 0, 1, 0]);
  });

  test('cancelForKey from inside the check of one of its operations prevents its completion', () => {
    const fixture = new Fixture();
    const operation = fixture.watch('a', 'x', {
      onTry: ({ tries }) => {
        if (tries === 3) fixture.purgatory.cancelForKey('x');
      },
    });
    Object.defineProperty(operation, 'forceComplete', { value: () => true });
    operation.holds = true;
    expect(fixture.purgatory.checkAndComplete('x')).toBe(0);
    expect([operation.isCompleted, fixture.log]).toEqual([false, []]);
    expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
  });
});

test('every gauge is exact after each of many completions, and unwatched keys are removed', ({ fixture }) => {
  const operations = Array.from({ length: 100 }, (_, i) =>
    fixture.watch(`${i}`, `abc${String.fromCharCode(1_000 + i)}`, { delayMs: 1_000 + i }),
  );
  operations.forEach((operation, i) => {
    const left = 100 - i;
    expect(fixture.gauges()).toEqual([4 * left, left, 3 + left, left]);
    if (i % 2 === 0) operation.forceComplete();
    else fixture.purgatory.cancelForKey(String.fromCharCode(1_000 + i));
  });
  expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
  expect(fixture.clock.pendingWakeups).toBe(0);
});

describe('operations of a key are checked in the order they were watched', () => {
  test('operations of a key are checked in watch order, each once', ({ fixture }) => {
    const tried: string[] = [];
    const onTry = ({ name }: { name: string }): unknown => tried.push(name);
    for (const name of ['a', 'b', 'c', 'd']) fixture.watch(name, name === 'c' ? 'yx' : 'xy', { onTry });
    fixture.watch('other', 'z', { onTry });
    tried.length = 0;
    expect(fixture.purgatory.checkAndComplete('x')).toBe(0);
    expect(tried).toEqual(['a', 'b', 'c', 'd']);
  });

  test('checkAndComplete returns the number of operations that it completed', ({ fixture }) => {
    for (const name of ['a', 'b', 'c', 'd', 'e']) {
      fixture.watch(name, 'x').holds = name !== 'b' && name !== 'd';
    }
    expect(fixture.purgatory.checkAndComplete('x')).toBe(3);
    expect(fixture.log).toEqual(['a tried', 'c tried', 'e tried']);
    expect(fixture.gauges()).toEqual([2, 0, 1, 0]);
    expect(fixture.purgatory.checkAndComplete('x')).toBe(0);
    expect(fixture.purgatory.checkAndComplete('nobody')).toBe(0);
  });

  test('an operation that is watched again is checked after the others', ({ fixture }) => {
    const a = fixture.watch('a', 'xy');
    const b = fixture.watch('b', 'x');
    fixture.purgatory.cancelForKey('y');
    fixture.purgatory.tryCompleteElseWatch(a, ['x']);
    a.holds = b.holds = true;
    expect(fixture.purgatory.checkAndComplete('x')).toBe(2);
    expect(fixture.log).toEqual(['b tried', 'a tried']);
  });

  test('an operation that is watched during a check is not part of it', ({ fixture }) => {
    fixture.watch('a', 'x', { onComplete: () => fixture.watch('c', 'x') }).holds = true;
    fixture.watch('b', 'x').holds = true;
    expect(fixture.purgatory.checkAndComplete('x')).toBe(2);
    const [c] = fixture.purgatory.cancelForKey('x');
    expect(c).toMatchObject({ name: 'c', tries: 2 });
  });

  test('an operation that is removed and watched again during a check is not part of it', ({ fixture }) => {
    const b = fixture.operation('b');
    fixture.watch('a', 'x', {
      onTry: ({ tries }) => {
        if (tries !== 3) return;
        fixture.purgatory.cancelForKey('y');
        fixture.purgatory.tryCompleteElseWatch(b, ['y', 'x']);
      },
    });
    fixture.purgatory.tryCompleteElseWatch(b, ['y', 'x']);
    const c = fixture.watch('c', 'x');
    fixture.purgatory.checkAndComplete('x');
    expect([b.tries, c.tries]).toEqual([4, 3]);
  });

  test('an operation that is forced or expires during a check is not checked any more', ({ fixture }) => {
    const forced = fixture.operation('forced');
    fixture.watch('a', 'x', {
      onTry: ({ tries }) => {
        if (tries !== 3) return;
        forced.forceComplete();
        fixture.clock.advance(10);
      },
    });
    fixture.purgatory.tryCompleteElseWatch(forced, ['x']);
    const expired = fixture.watch('expired', 'x', { delayMs: 10 });
    const last = fixture.watch('last', 'x');
    expect(fixture.purgatory.checkAndComplete('x')).toBe(0);
    expect([forced.tries, expired.tries, last.tries]).toEqual([2, 2, 3]);
    expect(fixture.gauges()).toEqual([2, 0, 1, 0]);
  });
});

test('a key given twice is one watch entry, and one try for each trigger', ({ fixture }) => {
  const operation = fixture.watch('a', 'xyxxy', { delayMs: 10 });
  expect(fixture.gauges()).toEqual([2, 1, 2, 1]);
  fixture.purgatory.checkAndComplete('x');
  expect(operation.tries).toBe(3);
  expect(fixture.purgatory.cancelForKey('y')).toEqual([operation]);
  expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
});
