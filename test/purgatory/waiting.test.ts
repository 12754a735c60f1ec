import { getEventListeners } from 'node:events';
import { describe, expect } from 'vitest';
import { Fixture, test } from './support/fixture.ts';

/** How a promise ended, or that it has not. */
async function outcomeOf(promise: Promise<unknown>): Promise<unknown> {
  const turn = new Promise((resolve) => setImmediate(resolve, 'pending'));
  return Promise.race([promise.catch((error: unknown) => error), turn]);
}

const nothing = (): undefined => undefined;

test('wait resolves for a condition that holds at once', async ({ fixture }) => {
  let looks = 0;
  await expect(fixture.purgatory.wait(['x'], () => ++looks, { timeoutMs: 10 })).resolves.toBe(1);
  expect(looks).toBe(1);
  expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
});

test('wait checks its condition twice at first, and after every trigger of one of its keys', async () => {
  const fixture = new Fixture();
  let value: string | undefined = undefined;
  let looks = 0;
  const condition = (): string | undefined => {
    looks++;
    return value;
  };
  const wait = fixture.purgatory.wait(['x', 'y', 'x'], condition, { timeoutMs: 10 });
  expect(fixture.gauges()).toEqual([2, 1, 2, 1]);
  expect(fixture.purgatory.checkAndComplete('y')).toBe(0);
  expect(fixture.purgatory.checkAndComplete('z')).toBe(0);
  expect(looks).toBe(3);
  value = 'here';
  expect(fixture.purgatory.checkAndComplete('x')).toBe(1);
  expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
  await expect(wait).resolves.toBe('here');
  expect(looks).toBe(4);
});

test.each([null, 0, '', false, NaN])('wait resolves with %o', async (value) => {
  const { purgatory } = new Fixture();
  await expect(purgatory.wait(['x'], () => value, { timeoutMs: 10 })).resolves.toBe(value);
  await expect(purgatory.wait(['x'], () => Promise.resolve(value), { timeoutMs: 10 })).resolves.toBe(value);
});

test('wait has at most one check in flight of a condition that returns promises, and each trigger is followed by one', async () => {
  const fixture = new Fixture();
  const looks: ((value: number | undefined) => void)[] = [];
  const condition = (): Promise<number | undefined> => new Promise((resolve) => looks.push(resolve));
  const wait = fixture.purgatory.wait(['x'], condition, { timeoutMs: 10 });
  expect(looks).toHaveLength(1);
  looks[0]?.(undefined);
  await outcomeOf(wait);
  expect(looks).toHaveLength(2);
  fixture.purgatory.checkAndComplete('x');
  fixture.purgatory.checkAndComplete('x');
  looks[1]?.(undefined);
  expect(await outcomeOf(wait)).toBe('pending');
  expect(looks).toHaveLength(3);
  looks[2]?.(7);
  await expect(wait).resolves.toBe(7);
  expect(looks).toHaveLength(3);
  expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
});

test('wait loses no trigger of a condition that only sometimes returns a promise', async ({ fixture }) => {
  let looks = 0;
  const condition = (): undefined | Promise<undefined> => {
    looks++;
    if (looks <= 2) return Promise.resolve(undefined);
    if (looks === 4) fixture.purgatory.checkAndComplete('x');
    return looks === 3 ? Promise.resolve(undefined) : undefined;
  };
  const wait = fixture.purgatory.wait(['x'], condition, { timeoutMs: 10 });
  expect(await outcomeOf(wait)).toBe('pending');
  fixture.purgatory.checkAndComplete('x');
  fixture.purgatory.checkAndComplete('x');
  expect(await outcomeOf(wait)).toBe('pending');
  expect(looks).toBe(5);
  fixture.clock.advance(10);
  await expect(wait).rejects.toHaveProperty('code', 'ERR_OPERATION_EXPIRED');
});

test('wait with a timeout of Infinity never expires', async ({ fixture }) => {
  let value: number | undefined = undefined;
  const wait = fixture.purgatory.wait(['x'], () => value, { timeoutMs: Infinity });
  expect(fixture.gauges()).toEqual([1, 0, 1, 0]);
  fixture.clock.advance(1e12);
  expect(await outcomeOf(wait)).toBe('pending');
  value = 5;
  fixture.purgatory.checkAndComplete('x');
  await expect(wait).resolves.toBe(5);
});

test('waits for one key resolve in the order of their calls', async ({ fixture }) => {
  let isOpen = false;
  const done: number[] = [];
  const waits = [1, 2, 3].map(async (i) => {
    done.push(await fixture.purgatory.wait(['x'], () => (isOpen ? i : undefined), { timeoutMs: 10 }));
  });
  isOpen = true;
  expect(fixture.purgatory.checkAndComplete('x')).toBe(3);
  await Promise.all(waits);
  expect(done).toEqual([1, 2, 3]);
});

test.each([10, 0, -1])(
  'wait with a timeout of %d rejects with ERR_OPERATION_EXPIRED, and nothing stays watched',
  async (timeoutMs) => {
    const fixture = new Fixture();
    const wait = fixture.purgatory.wait(['x'], nothing, { timeoutMs });
    expect(await outcomeOf(wait)).toBe('pending');
    fixture.clock.advance(Math.max(timeoutMs, 0));
    await expect(wait).rejects.toMatchObject({ name: 'EscapementError', code: 'ERR_OPERATION_EXPIRED' });
    await expect(wait).rejects.toThrow(`${timeoutMs} ms`);
    expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
  },
);

test('wait rejects with ERR_OPERATION_EXPIRED during a check, whatever its result is', async () => {
  for (const end of [() => 5, () => Promise.reject(new Error('late'))]) {
    const fixture = new Fixture();
    let land = (): void => undefined;
    const flight = new Promise<void>((resolve) => (land = resolve));
    const wait = fixture.purgatory.wait<number>(['x'], () => flight.then(end), { timeoutMs: 10 });
    fixture.clock.advance(10);
    land();
    await expect(wait).rejects.toHaveProperty('code', 'ERR_OPERATION_EXPIRED');
    expect(fixture.errors).toEqual([]);
  }
});

const mine = new Error('mine');

test.each([1, 2, 3])(
  'wait rejects at once with an error that its condition throws in check %d',
  async (which) => {
    const fixture = new Fixture();
    let looks = 0;
    const condition = (): undefined => {
      if (++looks === which) throw mine;
    };
    const wait = fixture.purgatory.wait(['x', 'y'], condition, { timeoutMs: 10 });
    fixture.purgatory.checkAndComplete('x');
    expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
    await expect(wait).rejects.toBe(mine);
    expect([looks, fixture.errors]).toEqual([which, []]);
  },
);

test.each([1, 2])(
  'wait rejects at once with an error that its condition rejects with in check %d',
  async (which) => {
    const fixture = new Fixture();
    let looks = 0;
    const condition = (): Promise<undefined> =>
      ++looks === which ? Promise.reject(mine) : Promise.resolve(undefined);
    await expect(fixture.purgatory.wait(['x'], condition, { timeoutMs: 10 })).rejects.toBe(mine);
    expect([looks, fixture.errors]).toEqual([which, []]);
    expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
  },
);

test('a wait whose condition triggers its own key for ever rejects with ERR_CHECK_ENDLESS', async () => {
  const fixture = new Fixture();
  const condition = (): undefined => void fixture.purgatory.checkAndComplete('x');
  const wait = fixture.purgatory.wait(['x'], condition, { timeoutMs: 10 });
  expect(fixture.errors).toEqual([]);
  fixture.clock.advance(10);
  await expect(wait).rejects.toHaveProperty('code', 'ERR_CHECK_ENDLESS');
});

test('wait with an aborted signal rejects at once, and does not check its condition', async ({ fixture }) => {
  const signal = AbortSignal.abort('mine');
  const wait = fixture.purgatory.wait(['x'], () => expect.fail(), { timeoutMs: 10, signal });
  await expect(wait).rejects.toBe('mine');
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
});

test('wait rejects when the iterable of its keys aborts its signal', async ({ fixture }) => {
  const controller = new AbortController();
  const { signal } = controller;
  function* keys(): Generator<string> {
    controller.abort('mine');
    yield 'x';
  }
  await expect(fixture.purgatory.wait(keys(), nothing, { timeoutMs: 10, signal })).rejects.toBe('mine');
  expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
});

test('wait rejects when its signal is aborted, and nothing stays watched', async ({ fixture }) => {
  const controller = new AbortController();
  const { signal } = controller;
  const wait = fixture.purgatory.wait(['x', 'y'], nothing, { timeoutMs: 10, signal });
  expect(getEventListeners(signal, 'abort')).toHaveLength(1);
  controller.abort();
  expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  await expect(wait).rejects.toBe(signal.reason);
});

test.each([1, 2])(
  'wait rejects when its signal is aborted from inside check %d, whatever the result is',
  async (which) => {
    const fixture = new Fixture();
    const controller = new AbortController();
    let looks = 0;
    const condition = (): number | undefined => {
      if (++looks !== which) return undefined;
      controller.abort('mine');
      return 5;
    };
    const { signal } = controller;
    await expect(fixture.purgatory.wait(['x'], condition, { timeoutMs: 10, signal })).rejects.toBe('mine');
    expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
  },
);

test('wait leaves no listener on its signal, however it ends', async () => {
  const { signal } = new AbortController();
  const ends: Record<string, (fixture: Fixture) => unknown> = {
    'a value': ({ purgatory }) => purgatory.checkAndComplete('x'),
    expired: ({ clock }) => clock.advance(10),
    cancelled: ({ purgatory }) => purgatory.cancelForKey('y'),
    closed: ({ purgatory }) => purgatory.close(),
    dropped: ({ purgatory }) => purgatory.close({ pending: 'drop' }),
    'the timer is closed': ({ timer }) => timer.close({ pending: 'run' }),
  };
  for (const end of Object.values(ends)) {
    const fixture = new Fixture();
    let value: number | undefined = undefined;
    const wait = fixture.purgatory.wait(['x', 'y'], () => value, { timeoutMs: 10, signal });
    value = 5;
    end(fixture);
    expect(await outcomeOf(wait)).not.toBe('pending');
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
    expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
  }
  for (const keys of [[], 'xy', [undefined]]) {
    const wait = new Fixture().purgatory.wait(keys as never, nothing, { timeoutMs: 10, signal });
    await expect(wait).rejects.toHaveProperty('code');
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  }
});

describe('wait rejects with ERR_PURGATORY_CLOSED and ERR_OPERATION_CANCELLED at close and cancelForKey', () => {
  test.each<[how: string, code: string, end: (fixture: Fixture) => unknown]>([
    ['close', 'ERR_PURGATORY_CLOSED', ({ purgatory }) => purgatory.close()],
    ['close with drop', 'ERR_PURGATORY_CLOSED', ({ purgatory }) => purgatory.close({ pending: 'drop' })],
    ['cancelForKey', 'ERR_OPERATION_CANCELLED', ({ purgatory }) => purgatory.cancelForKey('x')],
  ])('%s rejects a wait, whose operation is not in the returned array', async (_, code, end) => {
    const fixture = new Fixture();
    const before = fixture.watch('a', 'x');
    const wait = fixture.purgatory.wait(['y', 'x'], nothing, { timeoutMs: 10 });
    const after = fixture.watch('b', 'x');
    expect(end(fixture)).toEqual([before, after]);
    expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
    await expect(wait).rejects.toMatchObject({ name: 'EscapementError', code });
  });

  test('a wait that is closed from inside its own check rejects', async () => {
    for (const which of [1, 2]) {
      const fixture = new Fixture();
      let looks = 0;
      const condition = (): undefined => {
        if (++looks === which) fixture.purgatory.close();
      };
      const wait = fixture.purgatory.wait(['x'], condition, { timeoutMs: 10 });
      await expect(wait).rejects.toHaveProperty('code', 'ERR_PURGATORY_CLOSED');
    }
  });
});
