import { expect } from 'vitest';
import { Fixture, test } from './support/fixture.ts';

/** Longer than any stack is deep. */
const MANY = 200_000;

test('a nested checkAndComplete returns 0, and the outermost call the total', ({ fixture }) => {
  const returned: number[] = [];
  for (const [name, next] of ['ab', 'bc', 'cd']) {
    fixture.watch(String(name), String(name), {
      onComplete: () => returned.push(fixture.purgatory.checkAndComplete(String(next))),
    }).holds = true;
  }
  expect(fixture.purgatory.checkAndComplete('a')).toBe(3);
  expect(returned).toEqual([0, 0, 0]);
  expect(fixture.log).toEqual(['a tried', 'b tried', 'c tried']);
});

test('there is no recursion limit: each of 200 000 operations completes the next, in order', () => {
  const fixture = new Fixture();
  const { purgatory } = fixture;
  const operations = Array.from({ length: MANY }, (_, i) =>
    fixture.operation(`${i}`, { onComplete: () => purgatory.checkAndComplete(`${i + 1}`) }),
  );
  operations.forEach((operation, i) => {
    purgatory.tryCompleteElseWatch(operation, [`${i}`]);
    operation.holds = true;
  });
  expect(purgatory.checkAndComplete('0')).toBe(MANY);
  expect(fixture.log).toHaveLength(MANY);
  expect(fixture.log.every((line, i) => line === `${i} tried`)).toBe(true);
  expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
});

test.each(['an expiry', 'a forced completion'])(
  'there is no recursion limit across two purgatories, started by %s',
  (what) => {
    const [one, two] = [new Fixture(), new Fixture()];
    let completed = 0;
    const check = ({ purgatory }: Fixture, key: string): void => {
      const completedHere = purgatory.checkAndComplete(key);
      completed += completedHere;
    };
    const first = one.watch('first', 'f', { delayMs: 5, onComplete: () => check(one, '0') });
    for (let i = 0; i < MANY; i++) {
      const [here, there] = i % 2 === 0 ? [one, two] : [two, one];
      const onComplete = (): void => check(there, `${i + 1}`);
      const operation = here.operation(`${i}`, { onComplete });
      here.purgatory.tryCompleteElseWatch(operation, [`${i}`]);
      operation.holds = true;
    }
    if (what === 'an expiry') one.clock.advance(5);
    else first.forceComplete();
    expect(completed).toBe(MANY);
    expect([...one.gauges(), ...two.gauges()]).toEqual([0, 0, 0, 0, 0, 0, 0, 0]);
  },
);

test('every trigger is followed by a check that begins after it, also of 20 000 keys that complete nothing', () => {
  const fixture = new Fixture();
  const keys = Array.from({ length: 20_000 }, (_, i) => `${i}`);
  fixture.watch('leader', 'x', {
    onComplete: () => {
      for (const key of keys) fixture.purgatory.checkAndComplete(key);
    },
  }).holds = true;
  const operations = keys.map((key) => {
    const operation = fixture.operation(key);
    fixture.purgatory.tryCompleteElseWatch(operation, [key]);
    return operation;
  });
  Object.assign(operations.at(-1) ?? {}, { holds: true });
  expect(fixture.purgatory.checkAndComplete('x')).toBe(2);
  expect(fixture.errors).toEqual([]);
  expect(operations.every(({ tries }) => tries === 3)).toBe(true);
});

test('a purgatory is not left inside a check that ended with an error', ({ fixture }) => {
  const keyOf = (key: string): string => {
    if (key === 'bad') throw new Error('mine');
    return key;
  };
  const { purgatory } = new Fixture({ keyOf });
  const operation = fixture.operation('a', { onComplete: () => purgatory.checkAndComplete('bad') });
  purgatory.tryCompleteElseWatch(operation, ['x']);
  operation.holds = true;
  expect(purgatory.checkAndComplete('x')).toBe(1);
  const next = fixture.operation('b');
  purgatory.tryCompleteElseWatch(next, ['x']);
  next.holds = true;
  expect(purgatory.checkAndComplete('x')).toBe(1);
});

test('triggers of its keys during a check of an operation are one more check', ({ fixture }) => {
  const returned: number[] = [];
  const operation = fixture.watch('a', 'xy', {
    onTry: ({ tries }) => {
      if (tries === 3) for (const key of 'xxx') returned.push(fixture.purgatory.checkAndComplete(key));
    },
  });
  expect(fixture.purgatory.checkAndComplete('y')).toBe(0);
  expect(returned).toEqual([0, 0, 0]);
  expect(operation.tries).toBe(4);
});

const isEndless = expect.objectContaining({ code: 'ERR_CHECK_ENDLESS' }) as unknown;

test.each(['x', 'y'])(
  'a check that triggers its key %s ends with ERR_CHECK_ENDLESS, and its timeout remains',
  (key) => {
    const fixture = new Fixture();
    let isOn = false;
    const operation = fixture.watch('a', 'xy', {
      delayMs: 10,
      onTry: () => isOn && fixture.purgatory.checkAndComplete(key),
    });
    isOn = true;
    expect(fixture.purgatory.checkAndComplete('x')).toBe(0);
    expect(fixture.errors).toEqual([[isEndless, operation]]);
    fixture.clock.advance(10);
    expect(fixture.log).toEqual(['a expired', 'a onExpiration']);
  },
);

test('checks that complete nothing are counted for each call', ({ fixture }) => {
  fixture.watch('a', 'x', { onTry: () => fixture.purgatory.checkAndComplete('y') });
  for (let calls = 0; calls < 10_001; calls++) fixture.purgatory.checkAndComplete('x');
  expect(fixture.errors).toEqual([]);
});

test('checks that complete nothing are counted anew after a completion', ({ fixture }) => {
  const last = fixture.watch('last', 'y');
  let checks = -2; // without those of the two tries at first
  fixture.watch('a', 'x', {
    onTry: () => {
      if (++checks === 6_000) {
        last.holds = true;
        fixture.purgatory.checkAndComplete('y');
      }
      if (checks > 0 && checks < 12_000) fixture.purgatory.checkAndComplete('x');
    },
  });
  expect(fixture.purgatory.checkAndComplete('x')).toBe(1);
  expect([checks, fixture.errors]).toEqual([12_000, []]);
});

test('two checks that trigger each other end with ERR_CHECK_ENDLESS', ({ fixture }) => {
  let isOn = false;
  const onTry = (key: string) => () => isOn && fixture.purgatory.checkAndComplete(key);
  const [a, b] = [
    fixture.watch('a', 'x', { onTry: onTry('y') }),
    fixture.watch('b', 'y', { onTry: onTry('x') }),
  ];
  isOn = true;
  expect(fixture.purgatory.checkAndComplete('x')).toBe(0);
  expect(fixture.errors).toHaveLength(1);
  expect(fixture.errors[0]?.[0]).toEqual(isEndless);
  isOn = false;
  a.holds = b.holds = true;
  expect(fixture.purgatory.checkAndComplete('x') + fixture.purgatory.checkAndComplete('y')).toBe(2);
});
