import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { WaitGroup, WaitLine } from '../../src/core/wait-line.ts';
import { rejectionOf, settled, watch } from '../workqueue/support/outcome.ts';

const same = (value: string): string => value;
const reason = new Error('gave up');

describe('WaitLine', () => {
  test('gives to whoever has waited longest, and to nobody when nobody waits', async () => {
    const line = new WaitLine<string>();
    expect(line.give('lost')).toBe(false);
    const waiting = [watch(line.wait(same)), watch(line.wait(same))];
    expect([line.size, line.give('a'), line.size, line.give('b'), line.size]).toEqual([2, true, 1, true, 0]);
    expect(line.give('c')).toBe(false);
    await settled();
    expect(waiting.map(({ value }) => value)).toEqual(['a', 'b']);
  });

  test('makes what is received at the moment of the giving', async () => {
    const line = new WaitLine<{ text: string }>();
    const given = { text: 'now' };
    const waiting = line.wait(({ text }) => text);
    line.give(given);
    given.text = 'later';
    expect(await waiting).toBe('now');
  });

  test('what receive throws rejects', async () => {
    const line = new WaitLine<string>();
    const waiting = line.wait(() => {
      throw reason;
    });
    expect(line.give('a')).toBe(true);
    expect(await rejectionOf(waiting)).toBe(reason);
    expect(line.size).toBe(0);
  });

  test('one whose signal fires leaves at once, from any place', async () => {
    const line = new WaitLine<string>();
    const controllers = Array.from({ length: 5 }, () => new AbortController());
    const waiting = controllers.map(({ signal }) => watch(line.wait(same, signal)));
    for (const i of [2, 0, 4]) controllers[i]?.abort(reason);
    expect(line.size).toBe(2);
    line.giveAll('given');
    await settled();
    expect(waiting.map(({ value }) => value)).toEqual([reason, 'given', reason, 'given', reason]);
    for (const { signal } of controllers) expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  test('a signal that has fired does not join', async () => {
    const line = new WaitLine<string>();
    expect(await rejectionOf(line.wait(same, AbortSignal.abort(reason)))).toBe(reason);
    expect(line.size).toBe(0);
  });

  test('giveAll gives to those who are in line now', async () => {
    const line = new WaitLine<string>();
    const joined: ReturnType<typeof watch>[] = [];
    const join = (value: string): string => {
      joined.push(watch(line.wait(same)));
      return value;
    };
    const first = watch(line.wait(join));
    line.giveAll('a');
    await settled();
    expect([first.value, joined[0]?.state, line.size]).toEqual(['a', 'pending', 1]);
  });

  test('failAll sends everybody away', async () => {
    const line = new WaitLine<string>();
    const { signal } = new AbortController();
    const waiting = [watch(line.wait(same)), watch(line.wait(same, signal))];
    line.failAll(reason);
    await settled();
    expect(waiting.map(({ state, value }) => [state, value])).toEqual(Array(2).fill(['rejected', reason]));
    expect([line.size, getEventListeners(signal, 'abort').length]).toEqual([0, 0]);
  });

  test('an abort as a consequence of a giving comes too late for that one, and in time for the next', async () => {
    const line = new WaitLine<string>();
    const controller = new AbortController();
    const abort = (value: string): string => {
      controller.abort(reason);
      return value;
    };
    const [first, second] = [
      watch(line.wait(abort, controller.signal)),
      watch(line.wait(same, controller.signal)),
    ];
    line.give('a');
    expect(line.give('b')).toBe(false);
    await settled();
    expect([first.value, second.value]).toEqual(['a', reason]);
  });
});

describe('WaitGroup', () => {
  test('leaves its line as one, and nobody else does', async () => {
    const line = new WaitLine<string>();
    const group = new WaitGroup<string>();
    const [first, other, second] = [
      watch(line.wait(same, undefined, group)),
      watch(line.wait(same)),
      watch(line.wait(same, undefined, group)),
    ];
    group.dismiss('dismissed');
    expect([line.size, group.waiters.size]).toEqual([1, 0]);
    line.give('given');
    group.dismiss('again');
    await settled();
    expect([first.value, other.value, second.value]).toEqual(['dismissed', 'given', 'dismissed']);
  });

  test('forgets who was served or aborted', () => {
    const line = new WaitLine<string>();
    const group = new WaitGroup<string>();
    const controller = new AbortController();
    void line.wait(same, undefined, group);
    line.wait(same, controller.signal, group).catch(() => undefined);
    line.give('a');
    controller.abort();
    expect(group.waiters.size).toBe(0);
  });
});
