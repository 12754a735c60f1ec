import * as host from 'node:timers';
import * as hostPromises from 'node:timers/promises';
import { promisify } from 'node:util';
import * as ours from 'escapement/timers';
import * as oursPromises from 'escapement/timers/promises';
import { assertType, describe, expectTypeOf, test } from 'vitest';

describe('what takes the place of node:timers', () => {
  test('the modules fit where the host’s are expected', () => {
    expectTypeOf(ours.setTimeout).toExtend<typeof host.setTimeout>();
    expectTypeOf(ours.clearTimeout).toExtend<typeof host.clearTimeout>();
    expectTypeOf(ours.clearInterval).toExtend<typeof host.clearInterval>();
    expectTypeOf(oursPromises.setTimeout).toExtend<typeof hostPromises.setTimeout>();
    expectTypeOf(oursPromises.setInterval).toExtend<typeof hostPromises.setInterval>();
    expectTypeOf(oursPromises.scheduler).toExtend<typeof hostPromises.scheduler>();
  });

  test('a strict program compiles with either import', () => {
    const { setTimeout, setInterval, clearTimeout, clearInterval } = ours;
    let timeout: NodeJS.Timeout | undefined = setTimeout(() => undefined, 5);
    const byReturnType: ReturnType<typeof setTimeout> = setTimeout(() => undefined);
    const interval: NodeJS.Timeout = setInterval((a: string, b: number) => [a, b], 5, 'a', 1);
    clearTimeout(timeout);
    clearTimeout(byReturnType);
    clearTimeout(+interval);
    clearTimeout(String(+interval));
    clearTimeout(undefined);
    clearInterval(interval);
    timeout = undefined;
    assertType<NodeJS.Timeout | undefined>(timeout);
    void new Promise((resolve) => setTimeout(resolve, 5));
    void new Promise<void>((resolve) => setTimeout(resolve, 5));
    void new Promise<string>((resolve) => setTimeout(resolve, 5, 'value'));
    setTimeout((a: string, b?: number) => [a, b], 5, 'a');
    // @ts-expect-error -- the second argument is a number
    setTimeout((a: string, b: number) => [a, b], 5, 'a', 'b');
    // @ts-expect-error -- not a function
    setTimeout('code', 5);
    expectTypeOf(interval.hasRef()).toBeBoolean();
    expectTypeOf(promisify(setTimeout)).toEqualTypeOf<typeof oursPromises.setTimeout>();
  });

  test('the functions of timers/promises have the types of node:timers/promises', () => {
    expectTypeOf(oursPromises.setTimeout(5)).toEqualTypeOf<Promise<void>>();
    expectTypeOf(oursPromises.setTimeout(5, 'value', { ref: false })).toEqualTypeOf<Promise<string>>();
    expectTypeOf(oursPromises.setInterval(5, 1)[Symbol.asyncIterator]().next()).resolves.toExtend<
      IteratorResult<number>
    >();
    // As the types of Node 24 declare it.
    expectTypeOf(oursPromises.setInterval(5, 1)).toExtend<AsyncIterator<number, undefined, unknown>>();
    expectTypeOf(oursPromises.scheduler.yield()).toEqualTypeOf<Promise<void>>();
    expectTypeOf(ours.promises.setTimeout).toEqualTypeOf(oursPromises.setTimeout);
  });
});
