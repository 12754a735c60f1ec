/** The commands on the folder of an embedded broker. */
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { EscapementError } from 'escapement';
import { Client, EmbeddedBroker, Task, type LeasedTask } from 'escapement/tasks';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { hostFileSystem } from '../../../src/log/file-system.ts';
import { Log } from '../../../src/log/log.ts';
import { EntryWriter } from '../../../src/tasks/broker/embedded/entry-bytes.ts';
import { idsIn } from '../../conformance/broker/support.ts';
import { Random } from '../../diskqueue/random.ts';
import { leaveContender } from '../../diskqueue/support/left-contender.ts';
import { folderOfTest } from '../../folder.ts';
import { FIRST_SEED, runs } from '../../runs.ts';
import { refusal, serveTasks, tasksCommand, type Result } from './support/tasks-command.ts';

const HOUR_MS = 3_600_000;

let folder: string;
let broker: EmbeddedBroker;

/** A folder with a task in each state, whose id is that state; the active one was in work when its process died. */
beforeEach(async () => {
  folder = folderOfTest();
  broker = await EmbeddedBroker.open({ dataPath: folder });
  const client = new Client({ broker });
  const add = (taskId: string, options = {}): Promise<unknown> =>
    client.enqueue(new Task('work', 'x'.repeat(2_000)), { taskId, ...options });
  const lease = async (): Promise<LeasedTask> =>
    (await broker.dequeue('default', 1, HOUR_MS))[0] as LeasedTask;
  const failure = { error: 'boom', isFailure: true };
  for (const id of ['completed', 'retry', 'archived', 'active', 'pending']) {
    await add(id, { retentionMs: HOUR_MS });
  }
  await broker.complete(await lease());
  await broker.retry(await lease(), failure, Date.now() + HOUR_MS);
  await broker.archive(await lease(), failure);
  await lease();
  await add('scheduled', { processInMs: HOUR_MS });
  await add('aggregating', { group: 'g' });
  await broker.recordEnqueueEvent('nightly', { taskId: 'pending', atMs: Date.now() });
});
afterEach(async () => {
  await broker.close();
});

function run(...words: string[]): Promise<Result> {
  return tasksCommand([...words, '--path', folder]);
}

/** Everything of a folder that a command could change. */
function snapshot(): unknown {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort();
  return ['.', ...files].map((name) => {
    const path = join(folder, name);
    const { mtimeNs, ctimeNs, size, ino } = statSync(path, { bigint: true });
    const isFile = statSync(path).isFile();
    return { name, mtimeNs, ctimeNs, size, ino, bytes: isFile ? readFileSync(path, 'base64') : '' };
  });
}

describe('a folder that no process has open', () => {
  const INSPECTING: readonly (readonly [words: string, shown: RegExp])[] = [
    ['stats', /aggregating/],
    ['queue ls', /default/],
    ['queue inspect default', /default/],
    ['queue history default', /processed/],
    ['queue limits default', /limits +none/],
    ['queue keys default', /pending/],
    ['task ls -q default -s pending', /active[^]*pending/],
    ['task ls -q default -s scheduled', /scheduled/],
    ['task ls -q default -s retry', /boom/],
    ['task ls -q default -s archived', /archived/],
    ['task ls -q default -s completed', /completed/],
    ['task ls -q default -s aggregating -g g', /aggregating/],
    ['task inspect -q default -i pending', /xxxx/],
    ['task inspect -q default -i active --json', /"retried": 0/],
    ['group ls -q default', /g/],
    ['server ls', /host/],
    ['cron ls', /entry/],
    ['cron history nightly', /pending/],
    ['dash --once', /default/],
  ];

  test.each(INSPECTING)(
    'a folder that no process has open is not changed in any byte, time or name by `%s`',
    async (words, shown) => {
      const [segment = ''] = segments();
      const asKilled = readFileSync(join(folder, segment));
      await broker.close();
      writeFileSync(join(folder, segment), Buffer.concat([asKilled, Buffer.from('a torn end')]));
      const before = snapshot();

      const { stdout, stderr, code } = await run(...words.split(' '));

      expect({ stderr, code }).toEqual({ stderr: '', code: 0 });
      expect(stdout).toMatch(shown);
      expect(snapshot()).toEqual(before);
    },
  );

  test('a folder that no process has open is opened by the commands that change something, and what they do is there for the next process', async () => {
    await broker.close();
    expect(await run('queue', 'pause', 'default')).toMatchObject({ code: 0 });
    expect(await run('queue', 'limits', 'default', '--concurrency', '2')).toMatchObject({ code: 0 });
    expect(await run('task', 'delete', '-q', 'default', 'pending')).toMatchObject({ code: 0 });
    expect(await run('task', 'runall', '-q', 'default', '-s', 'archived')).toMatchObject({ code: 0 });
    expect(await run('task', 'enqueue', '-t', 'work', '--id', 'new')).toMatchObject({ code: 0 });

    broker = await EmbeddedBroker.open({ dataPath: folder });
    const { isPaused } = await broker.queueStats('default');
    expect(isPaused).toBe(true);
    expect(await broker.limits('default')).toEqual({ concurrency: 2 });
    expect(await idsIn(broker, 'pending')).toEqual(['active', 'archived', 'new']);
  });

  test('a folder that no process has open has nothing to cancel and nothing to watch', async () => {
    await broker.close();
    expect(await run('task', 'cancel', 'active')).toMatchObject({ code: 1 });
    expect(await run('dash')).toMatchObject({ code: 2, stderr: expect.stringContaining('--once') as string });
  });

  test('a folder that no process has open shows what is intact, and how many parts are damaged', async () => {
    await broker.close();
    damage();
    const { stdout, stderr, code } = await run('queue', 'ls');
    expect(stdout).toContain('default');
    expect(stderr).toBe("escapement: 1 damaged part of the folder left out; 'tasks verify' lists them\n");
    expect(code).toBe(0);
  });
});

describe('tasks verify and tasks repair', () => {
  const repaired = (): string[] => readdirSync(folder).filter((name) => name.includes('.damaged'));

  test('tasks verify and tasks repair find nothing in an intact folder, and change nothing', async () => {
    await broker.close();
    const before = snapshot();
    const { stdout, code } = await run('verify');
    expect(stdout).toMatch(/^tasks \(checked\): clean; 7 tasks in 1 queue, \d+ records, \d+ KiB\n$/);
    expect(code).toBe(0);
    expect(await run('repair')).toMatchObject({ stdout: 'tasks (checked): nothing to do\n', code: 0 });
    expect(snapshot()).toEqual(before);
  });

  test('tasks verify and tasks repair name the file, the offset and the bytes of damage, and repair it once', async () => {
    await broker.close();
    damage();
    const file = join(folder, segments()[0] ?? '');
    const { stdout, code } = await run('verify', '--json');
    const { problems, ...others } = JSON.parse(stdout) as { problems: Record<string, unknown>[] };
    expect({ code, ...others }).toMatchObject({ code: 1, isClean: false, isOpen: false, tasks: 6 });
    expect(problems).toEqual([
      {
        ...{ file, offset: expect.any(Number) as number, bytes: expect.any(Number) as number },
        ...{ firstSequence: expect.any(Number) as number, lastSequence: expect.any(Number) as number },
        reason: 'the checksum of a payload is wrong',
      },
    ]);
    expect((await run('verify')).stdout).toMatch(/record \d+: .* wrong\n/);

    const before = snapshot();
    const planned = await run('repair');
    expect(planned.stdout).toContain('this would be done');
    expect(snapshot()).toEqual(before);
    const applied = await run('repair', '--apply');
    expect(applied.stdout).toMatch(/repaired\n {2}rewrite .*\n {2}lost .*record/);
    expect([planned.code, applied.code]).toEqual([1, 1]);
    expect(repaired()).toHaveLength(1);
    expect(await run('repair', '--apply')).toMatchObject({ code: 0 });
    expect(await run('verify')).toMatchObject({ code: 0 });
    const onCorruption = ({ reason }: { reason: string }): never => expect.fail(reason);
    broker = await EmbeddedBroker.open({ dataPath: folder, onCorruption });
    const { counts } = await broker.queueStats('default');
    expect(counts).toMatchObject({
      completed: 0,
      retry: 1,
      archived: 1,
      pending: 2,
      scheduled: 1,
      aggregating: 1,
    });
  });

  test('tasks verify and tasks repair name files by one separator, whatever is at the end of --path', async () => {
    await broker.close();
    damage();
    for (const words of [['verify'], ['repair'], ['repair', '--apply']]) {
      const { stdout } = await tasksCommand([...words, '--path', `${folder}//`]);
      expect(stdout).toContain(`${join(folder, segments()[0] ?? '')} at `);
    }
  });

  test('tasks verify and tasks repair find a record that is intact and not one of a broker', async () => {
    await broker.close();
    const options = { files: hostFileSystem, folder, name: 'tasks', recordType: 16, maxBytesPerFile: 65_536 };
    const { log } = await Log.open({ ...options, isAlwaysDurable: true, wallNow: Date.now });
    await log.append([Buffer.from('no entry')]);
    await log.close();
    const { stdout, code } = await run('verify');
    expect(code).toBe(1);
    expect(stdout).toMatch(/1 problem;.*\n.*, \d+ bytes: not entries of a broker/);
    expect((await run('queue', 'ls')).code).toBe(0);
  });

  test.each([
    ['before it was read', 'the segment was removed'],
    ['while it was read', undefined],
  ])('tasks verify reads a folder again of which a file was removed %s', async (_, reason) => {
    await broker.close();
    const open = EmbeddedBroker.open.bind(EmbeddedBroker);
    const opening = vi.spyOn(EmbeddedBroker, 'open').mockImplementationOnce((options) => {
      const file = join(folder, 'tasks.0000000000.segment');
      if (reason === undefined) {
        const cause = Object.assign(new Error(`ENOENT: ${file}`), { code: 'ENOENT' });
        throw new EscapementError('ERR_BROKER_UNAVAILABLE', cause.message, { cause });
      }
      options?.onCorruption?.({ file, offset: 0, bytes: 0, reason });
      return open(options);
    });
    onTestFinished(() => opening.mockRestore());
    expect(await run('verify')).toMatchObject({ code: 0 });
    expect(opening).toHaveBeenCalledTimes(2);
  });

  test('tasks verify passes over an entry of an unknown kind, as a broker does', async () => {
    await broker.close();
    const options = { files: hostFileSystem, folder, name: 'tasks', recordType: 16, maxBytesPerFile: 65_536 };
    const { log } = await Log.open({ ...options, isAlwaysDurable: true, wallNow: Date.now });
    const entry = new EntryWriter();
    entry.begin(99);
    entry.text('of a later version');
    entry.end();
    await log.append([entry.bytes]);
    await log.close();
    const { stdout, code } = await run('verify');
    expect(stdout).not.toMatch(/unknown kind/);
    expect(code).toBe(0);
    expect((await run('queue', 'ls')).code).toBe(0);
  });

  test('tasks verify finds every flipped bit that a broker reports, and a repaired folder has no damage', async () => {
    await broker.close();
    const path = join(folder, segments()[0] ?? '');
    const intact = readFileSync(path);
    const random = new Random(FIRST_SEED);
    for (let n = 0; n < runs(60); n++) {
      const bytes = Buffer.from(intact);
      const at = random.below(bytes.length);
      bytes[at] = (bytes[at] ?? 0) ^ (1 << random.below(8));
      writeFileSync(path, bytes);
      const what = `a bit of byte ${at}`;
      const isReported = (await run('queue', 'ls')).stderr !== '';
      const { code } = await run('verify');
      expect([0, 1], what).toContain(code);
      if (isReported) expect(code, what).toBe(1);
      expect([0, 1], what).toContain((await run('repair', '--apply')).code);
      expect(await run('verify'), what).toMatchObject({ code: 0 });
      expect(await run('repair'), what).toMatchObject({ code: 0 });
      expect(await run('queue', 'ls'), what).toMatchObject({ stderr: '', code: 0 });
      for (const kept of repaired()) rmSync(join(folder, kept));
      writeFileSync(path, intact);
    }
  });

  test.each(['is missing', 'has two damaged headers'])(
    'tasks repair ends all reports of a file that %s, and reports what it has cost',
    async (what) => {
      await broker.close();
      broker = await EmbeddedBroker.open({ dataPath: folder, maxBytesPerFile: 4_096 });
      for (let n = 0; n < 4; n++) await new Client({ broker }).enqueue(new Task('work', 'x'.repeat(3_000)));
      await broker.close();
      const [first = '', second = '', ...others] = segments();
      expect(others.length).toBeGreaterThan(2);
      for (const path of [first, second, others.at(-1) ?? ''].map((name) => join(folder, name))) {
        const intact = new Map(segments().map((name) => [name, readFileSync(join(folder, name))]));
        const bytes = Buffer.from(readFileSync(path)).fill(0, 0, 128);
        if (what === 'is missing') rmSync(path);
        else writeFileSync(path, bytes);
        const isKnown = what !== 'is missing' || path.endsWith(second); // another file that is missing is not noticed
        const applied = await run('repair', '--apply');
        expect(applied.stdout, path).toMatch(isKnown ? / {2}lost / : /nothing to do/);
        expect(applied.code, path).toBe(isKnown ? 1 : 0);
        expect(await run('verify'), path).toMatchObject({ code: 0 });
        const again = await run('repair');
        expect(again.stdout, path).toContain('nothing to do');
        expect(again.code, path).toBe(0);
        expect(await run('queue', 'ls'), path).toMatchObject({ stderr: '', code: 0 });
        for (const [name, before] of intact) writeFileSync(join(folder, name), before);
      }
    },
  );
});

test('a command reports which process has a folder open, and how to reach that', async () => {
  for (const words of [
    ['queue', 'ls'],
    ['queue', 'pause', 'default'],
  ]) {
    const owner = `process ${process.pid} on ${hostname()}`;
    const way = 'reach its tasks by its HTTP API (tasksHandler): --url http://…';
    const named = refusal(`${folder}: ${owner} has this folder open; ${way}`);
    await expect.poll(() => run(...words)).toEqual(named); // the owner is asked for half a second
  }
  const url = await serveTasks({ broker, rootPath: '/admin' }, '/admin');
  expect((await tasksCommand(['queue', 'ls', '--url', url])).stdout).toContain('default');
});

test('the folder of a process that was killed while it took the lock is no obstacle to a command', async () => {
  await broker.close();
  const [target, left] = [folderOfTest(), leaveContender(folder, 'tasks')];
  expect(leaveContender(target, 'tasks')).toBe(left);
  for (const words of ['queue ls', 'verify', 'repair --apply', 'queue pause default'])
    expect(await run(...words.split(' ')), words).toMatchObject({ stderr: '', code: 0 });
  expect(await tasksCommand(['copy', folder, target])).toMatchObject({ code: 0 });
  expect(await tasksCommand(['verify', '--path', target])).toMatchObject({ code: 0 });
  expect(readdirSync(target)).toContain(left);
});

test('a command makes no folder, and takes no folder with other files for one with tasks', async () => {
  const missing = join(folder, 'missing');
  expect(await tasksCommand(['task', 'enqueue', '-t', 'work', '--path', missing])).toMatchObject({ code: 2 });
  expect(await tasksCommand(['queue', 'ls', '--path', tmpdir()])).toEqual(
    refusal(`${tmpdir()}: there are no tasks in this folder`),
  );
  for (const words of [['queue', 'ls'], ['verify'], ['repair', '--apply']]) {
    const both = await run(...words, '--uri', 'redis://127.0.0.1');
    expect(both).toEqual(refusal('--path and --uri cannot be used together'));
  }
});

function segments(): string[] {
  return readdirSync(folder).filter((name) => name.endsWith('.segment'));
}

/** Flips a bit in the payload of the first task. */
function damage(): void {
  const path = join(folder, segments()[0] ?? '');
  const bytes = readFileSync(path);
  const at = bytes.indexOf('xxxx') + 1_000;
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  writeFileSync(path, bytes);
}
