import { checkPurgatory } from 'escapement/testing';
import { expect, vi } from 'vitest';
import { setChain, setOwner, setTimed } from '../../src/purgatory/delayed-operation.ts';
import type { PendingOperations } from '../../src/purgatory/pending-operations.ts';
import { Watcher, WatcherList } from '../../src/purgatory/watchers.ts';
import { thrownBy } from '../timer/support/errors.ts';
import { Fixture, type TestOperation, test } from './support/fixture.ts';

const INTERNALS: symbol = Symbol.for('escapement.purgatory.internals');

/** Reads what a test writes to behind the back of `readonly`. */
type Writable<T> = { -readonly [K in keyof T]: T[K] };

interface Patient {
  readonly fixture: Fixture;
  readonly internals: PendingOperations;
  readonly lists: Map<unknown, WatcherList>;
  readonly a: TestOperation;
  readonly b: TestOperation;
  readonly c: TestOperation;
  /** The watcher of an operation under a key. */
  readonly watcher: (operation: TestOperation, key: string) => Writable<Watcher>;
}

/** A purgatory in which a waits for x, b for x and y, c for x and y without a timeout; one was cancelled. */
function makePatient(): Patient {
  const fixture = new Fixture();
  fixture.watch('gone', 'xyz', { delayMs: 10 }).forceComplete();
  const a = fixture.watch('a', 'x', { delayMs: 10 });
  const b = fixture.watch('b', 'xy', { delayMs: 10 });
  const c = fixture.watch('c', 'xy');
  const internals = (fixture.purgatory as unknown as Record<symbol, () => PendingOperations>)[INTERNALS]?.();
  if (internals === undefined) throw new Error('the internals have moved');
  const lists = internals.watchers.lists.all as Map<unknown, WatcherList>;
  const watcher = (operation: TestOperation, key: string): Writable<Watcher> => {
    const list = lists.get(key);
    for (let node = list?.next; node instanceof Watcher; node = node.next) {
      if (node.operation === operation) return node;
    }
    throw new Error('no such watcher');
  };
  checkPurgatory(fixture.purgatory);
  return { fixture, internals, lists, a, b, c, watcher };
}

/** What checkPurgatory reports, and what is wrong then. */
const CORRUPTIONS: [RegExp, ...((patient: Patient) => unknown)[]][] = [
  [/a watched operation refers to another purgatory/, ({ b }) => setOwner(b, undefined)],
  [/a completed operation is still watched/, ({ b }) => Object.assign(b, { _reason: 'forced' })],
  [
    /key x: a watcher does not point back to the one before/,
    ({ watcher, a, b, c }) => {
      watcher(c, 'x').prev = watcher(a, 'x');
      expect(watcher(b, 'x').next).toBe(watcher(c, 'x'));
    },
    ({ watcher, a, c }) => (watcher(a, 'x').next = watcher(c, 'x')),
  ],
  [
    /key x: the tail of the list is wrong/,
    ({ lists, watcher, b }) => Object.assign(lists.get('x') ?? {}, { prev: watcher(b, 'x') }),
  ],
  [
    /key z: its list is that of another key: key y/,
    ({ lists }) => {
      lists.set('z', lists.get('y') as WatcherList);
      lists.delete('y');
    },
  ],
  [/emptyKeys is \d, but \d keys have no watcher/, ({ lists }) => lists.set('w', new WatcherList('w'))],
  [/key y: its list is not the one that the key leads to/, ({ lists }) => lists.delete('y')],
  [
    /key x: a watcher refers to another key/,
    ({ lists, watcher, b }) => (watcher(b, 'x').list = lists.get('y') as WatcherList),
  ],
  [
    /key y: an operation has no link to its watcher/,
    ({ watcher, c }) => {
      const { sibling, list } = watcher(c, 'y');
      expect([sibling?.list.key, list.key]).toEqual(['x', 'y']);
      setChain(c, sibling, 4);
    },
  ],
  [
    /an operation has the watcher of another one|has no link to its watcher/,
    ({ watcher, a, b }) => (watcher(a, 'x').sibling = watcher(b, 'x')),
  ],
  [/key y: an operation has a watcher that is not linked/, ({ watcher, b }) => watcher(b, 'y').unlink()],
  [/key z/, ({ watcher, b }) => setChain(b, new Watcher(b, new WatcherList('z'), watcher(b, 'y')), 3)],
  [
    /key x: operations are out of order, or one is there twice/,
    ({ watcher, a }) => setChain(a, watcher(a, 'x'), 1_000),
    ({ lists, watcher, c }) => setChain(c, new Watcher(c, lists.get('x') as WatcherList, watcher(c, 'y')), 4),
  ],
  [
    /watched is 6, but there are 5 watch entries/,
    ({ internals }) => vi.spyOn(internals.watchers, 'size', 'get').mockReturnValue(6),
  ],
  [/numDelayed is 2, but 1 timeouts are pending/, ({ a }) => setTimed(a, false)],
  [/numDelayed is 2, but 3 timeouts are pending/, ({ c }) => setTimed(c, true)],
  [
    /watchedKeys is 3, but there are 2 keys/,
    ({ internals }) => vi.spyOn(internals.watchers, 'keys', 'get').mockReturnValue(3),
  ],
];

test.each(CORRUPTIONS)('checkPurgatory reports %s', (message, ...corruptions) => {
  for (const corrupt of corruptions) {
    const patient = makePatient();
    corrupt(patient);
    const error = thrownBy(() => checkPurgatory(patient.fixture.purgatory)) as Error;
    expect(error.message).toMatch(message);
    expect(error.message).toMatch(/^checkPurgatory: /);
    vi.restoreAllMocks();
  }
});
