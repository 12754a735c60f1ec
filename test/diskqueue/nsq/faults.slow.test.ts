import { describe, expect, it } from 'vitest';
import type { CorruptionEvent, StoredMessage } from '../../../src/diskqueue/message-log.ts';
import { CrashDisk, type Fault } from './crash-disk.ts';
import { messages, put, readAll, texts } from './queue-folder.ts';
import { checkLeft, keepsPromises, openLog, runScenario, Scenario } from './scenario.ts';

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

describe.each([true, false])('always durable: %s', (isAlwaysDurable) => {
  describe.each(['ENOSPC', 'EIO', 'EMFILE'])('%s', (code) => {
    it.each([1, 3])(
      'in any call, %i times in a row: every promise is kept, no refused put comes, nothing is put aside',
      async (times) => {
        await failEachCall(isAlwaysDurable, code, times, async (scenario, at) => {
          const { disk, told } = scenario;
          await scenario.close();
          const mayCome = { refused: times > 1, lostWritten: false };
          expect(`${at}: ${(await checkLeft(disk, isAlwaysDurable, told, mayCome)) ?? 'well'}`).toBe(
            `${at}: well`,
          );
          expect(scenario.damages).toEqual([]);
          expect(disk.names.filter((name) => name.endsWith('.bad'))).toEqual([]);
        });
      },
    );
  });

  it('after an error the power fails: what is durable is there', async () => {
    await failEachCall(isAlwaysDurable, 'EIO', 1, async ({ disk, told }, at) => {
      if (!isAlwaysDurable && at.endsWith(' sync')) return; // then something was readable, and is lost: damage
      for (const bytes of ['none', 'some', 'all'] as const) {
        const left = disk.afterPowerFailure({ bytes, part: 0.5 });
        const result = await checkLeft(left, isAlwaysDurable, told, { refused: true, lostWritten: true });
        expect(`${at}: ${result ?? 'well'}`).toBe(`${at}: well`);
      }
    });
  });

  it('after an error the process is killed: what is with the host is there', async () => {
    await failEachCall(isAlwaysDurable, 'EIO', 1, async ({ disk, told }, at) => {
      const allowed = { refused: true, lostWritten: false };
      const result = await checkLeft(disk.afterKill(), isAlwaysDurable, told, allowed);
      expect(`${at}: ${result ?? 'well'}`).toBe(`${at}: well`);
    });
  });
});

describe('a sync that fails when a file rolls', () => {
  const message = Buffer.alloc(40, 'x');
  const eio = { code: 'EIO' };

  it('is told to who appends; what was to go to the next file has left nothing', async () => {
    const disk = new CrashDisk();
    const log = await openLog(disk, true, []);
    await put(log, [message, message]);
    disk.fault = (_, name) => (name === 'sync' ? 'EIO' : undefined);
    expect(await log.append([message, message])).toMatchObject({ appended: 0, error: eio });
    disk.fault = () => undefined;
    await put(log, [message]);
    expect(log.depth).toBe(3);
    await log.close();
    const again = await openLog(disk, true, []);
    expect(again.depth).toBe(3);
    await again.close();
  });

  it('is told by every sync and by close, as long as something may be not on the disk', async () => {
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

  it('is told by close, which saves and closes all the same', async () => {
    const disk = new CrashDisk();
    const log = await openLog(disk, false, []);
    await log.append([message, message]);
    disk.fault = (_, name) => (name === 'sync' ? 'EIO' : undefined);
    await expect(log.sync()).rejects.toMatchObject(eio);
    disk.fault = () => undefined;
    const [first] = await log.read();
    log.acknowledge(first as StoredMessage);
    await expect(log.close()).rejects.toMatchObject(eio);
    const again = await openLog(disk, false, []);
    expect(again.depth).toBe(1);
    await again.close();
  });
});

describe('emptying that fails', () => {
  it('has dropped all messages here; what is put then is not dropped with them', async () => {
    const disk = new CrashDisk();
    const log = await openLog(disk, true, []);
    await put(log, messages(10));
    disk.fault = (_, name) => (name === 'create' ? 'EACCES' : undefined);
    await expect(log.empty()).rejects.toMatchObject({ code: 'EACCES' });
    expect([log.depth, log.bytes, await log.read()]).toEqual([0, 0, []]);
    expect(log.hasUnsavedAcks).toBe(true);
    const old = await openLog(disk.afterKill(), true, []);
    expect(old.depth).toBe(10); // they come again
    disk.fault = () => undefined;
    await put(log, messages(1, 10));
    expect(texts(await log.read())).toEqual(texts(messages(1, 10)));
    const damages: CorruptionEvent[] = [];
    const killed = await openLog(disk.afterKill(), true, damages);
    expect(texts(await readAll(killed))).toEqual(texts(messages(1, 10)));
    await log.saveAcks(true);
    expect(disk.names.filter((name) => name.endsWith('.dat'))).toHaveLength(2);
    await log.close();
    expect(damages).toEqual([]);
  });
});

describe('the check of promises', () => {
  const one = { isAcked: false, isAckSaved: false, isMaybeGone: false };
  const told = [
    { ...one, text: 'a', state: 'durable' as const },
    { ...one, text: 'b', state: 'refused' as const },
    { ...one, text: 'c', state: 'written' as const },
  ];
  const strict = { refused: false, lostWritten: false };

  it('notices what is missing, what is there twice, and what is in the wrong order', () => {
    expect(keepsPromises(told, ['a', 'c'], strict)).toBe(true);
    expect(keepsPromises(told, ['a', 'b', 'c'], strict)).toBe(false);
    expect(keepsPromises(told, ['a', 'b', 'c'], { ...strict, refused: true })).toBe(true);
    expect(keepsPromises(told, ['a'], strict)).toBe(false);
    expect(keepsPromises(told, ['a'], { ...strict, lostWritten: true })).toBe(true);
    expect(keepsPromises(told, ['c', 'a'], strict)).toBe(false);
    expect(keepsPromises(told, ['a', 'a', 'c'], strict)).toBe(false);
    expect(keepsPromises(told, [], { refused: true, lostWritten: true })).toBe(false);
  });
});
