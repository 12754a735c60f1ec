import { describe, expect, it } from 'vitest';
import type { StoredMessage } from '../../../src/diskqueue/message-log.ts';
import { CrashDisk, type Fault, type PowerFailure } from './crash-disk.ts';
import { checkLeft, keepsPromises, openLog, runScenario, Scenario, type TrackedMessage } from './scenario.ts';

async function expectKept(at: string, ...left: Parameters<typeof checkLeft>): Promise<void> {
  expect([at, await checkLeft(...left)]).toEqual([at, undefined]);
}

/** Every call of the scenario fails in turn, so many times in a row. */
async function failEachCall(
  isAlwaysDurable: boolean,
  code: string,
  times: number,
  check: (scenario: Scenario, at: string) => Promise<void>,
): Promise<void> {
  for (let at = 1; ; at++) {
    const disk = new CrashDisk();
    const scenario = new Scenario(disk, isAlwaysDurable);
    let failed = '';
    const fault: Fault = (call, name) => {
      if (call < at || call >= at + times) return undefined;
      failed ||= `call ${call}, ${name}`;
      return code;
    };
    disk.fault = fault;
    await runScenario(scenario);
    if (failed === '') return;
    disk.fault = () => undefined;
    await check(scenario, failed);
  }
}

describe.each([true, false])('errors, always durable: %s', (isAlwaysDurable) => {
  describe.each(['ENOSPC', 'EIO', 'EMFILE'])('%s', (code) => {
    it.each([1, 3])(
      'an error in any call, %i times in a row, breaks no promise, delivers no rejected put, and sets no file aside',
      async (times) => {
        await failEachCall(isAlwaysDurable, code, times, async (scenario, at) => {
          const { disk, tracked } = scenario;
          await scenario.close();
          const mayCome = { refused: times > 1, lostWritten: false };
          await expectKept(at, disk, isAlwaysDurable, tracked, mayCome);
          expect(scenario.damages).toEqual([]);
          expect(disk.names.filter((name) => name.endsWith('.bad'))).toEqual([]);
        });
      },
    );
  });

  it('durable messages survive a power failure after an error', async () => {
    await failEachCall(isAlwaysDurable, 'EIO', 1, async ({ disk, tracked }, at) => {
      if (!isAlwaysDurable && at.endsWith(' sync')) return; // then something was readable, and is lost: damage
      for (const bytes of ['none', 'some', 'all'] as const) {
        const left = disk.afterPowerFailure({ bytes, part: 0.5 });
        await expectKept(at, left, isAlwaysDurable, tracked, { refused: true, lostWritten: true });
      }
    });
  });

  it('written messages survive a kill after an error', async () => {
    await failEachCall(isAlwaysDurable, 'EIO', 1, async ({ disk, tracked }, at) => {
      const allowed = { refused: true, lostWritten: false };
      await expectKept(at, disk.afterKill(), isAlwaysDurable, tracked, allowed);
    });
  });
});

describe('a sync that fails when a file rolls', () => {
  const message = Buffer.alloc(40, 'x');
  const eio = { code: 'EIO' };

  it('sync and close reject after a failed sync until the messages in doubt are acknowledged', async () => {
    const disk = new CrashDisk();
    const log = await openLog(disk, false, []);
    await log.append([message, message]);
    disk.fault = (_, name) => (name === 'sync' ? 'EIO' : undefined);
    expect(await log.append([message])).toMatchObject({ appended: 0, error: eio });
    disk.fault = () => undefined;
    expect(await log.append([message])).toEqual({ appended: 1 });
    expect(log.depth).toBe(3);
    const [first, second] = await log.read();
    for (const stored of [first, second] as StoredMessage[]) {
      await expect(log.sync()).rejects.toMatchObject(eio);
      log.acknowledge(stored);
    }
    await log.sync();
    await log.close();
  });
});

describe('the check of promises', () => {
  const one = { isAcked: false, isAckSaved: false, isMaybeGone: false };
  const tracked = [
    { ...one, text: 'a', state: 'durable' as const },
    { ...one, text: 'b', state: 'refused' as const },
    { ...one, text: 'c', state: 'written' as const },
  ];
  const strict = { refused: false, lostWritten: false };

  it('the check of promises finds missing, duplicate and reordered messages', () => {
    expect(keepsPromises(tracked, ['a', 'c'], strict)).toBe(true);
    expect(keepsPromises(tracked, ['a', 'b', 'c'], strict)).toBe(false);
    expect(keepsPromises(tracked, ['a', 'b', 'c'], { ...strict, refused: true })).toBe(true);
    expect(keepsPromises(tracked, ['a'], strict)).toBe(false);
    expect(keepsPromises(tracked, ['a'], { ...strict, lostWritten: true })).toBe(true);
    expect(keepsPromises(tracked, ['c', 'a'], strict)).toBe(false);
    expect(keepsPromises(tracked, ['a', 'a', 'c'], strict)).toBe(false);
    expect(keepsPromises(tracked, [], { refused: true, lostWritten: true })).toBe(false);
  });
});

interface Left {
  readonly at: string;
  readonly disk: CrashDisk;
  readonly tracked: readonly TrackedMessage[];
}

/** What each call of the scenario would leave, if it were the one that the power fails in. */
async function leftByEachCall(isAlwaysDurable: boolean, failures: readonly PowerFailure[]): Promise<Left[]> {
  const disk = new CrashDisk();
  const scenario = new Scenario(disk, isAlwaysDurable);
  const all: Left[] = [];
  disk.fault = (call, name) => {
    for (const failure of failures) {
      const at = `call ${call}, ${name}, ${failure.bytes} ${failure.part}`;
      all.push({ at, disk: disk.afterPowerFailure(failure), tracked: structuredClone(scenario.tracked) });
    }
    return undefined;
  };
  await runScenario(scenario);
  expect(scenario.errors).toEqual([]);
  return all;
}

const PARTS = [0, 0.1, 0.34, 0.5, 0.77, 0.9, 1];

describe.each([true, false])('crashes, always durable: %s', (isAlwaysDurable) => {
  it('written messages survive a kill in any call', async () => {
    for (const { at, disk, tracked } of await leftByEachCall(isAlwaysDurable, [{ bytes: 'all', part: 1 }])) {
      await expectKept(at, disk, isAlwaysDurable, tracked, { refused: true, lostWritten: false });
    }
  });

  it.each(['none', 'some', 'all', 'zeros'] as const)(
    'durable messages survive a power failure in any call that leaves %s of the unsynced bytes',
    async (bytes) => {
      const failures = (bytes === 'zeros' ? [0] : PARTS).map((part) => ({ bytes, part }));
      for (const { at, disk, tracked } of await leftByEachCall(isAlwaysDurable, failures)) {
        await expectKept(at, disk, isAlwaysDurable, tracked, { refused: true, lostWritten: true });
      }
    },
  );
});
