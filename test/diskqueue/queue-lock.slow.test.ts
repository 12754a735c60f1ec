import { execFileSync, spawn, spawnSync, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readdirSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { LocalSocket } from '../../src/log/local-socket.ts';
import { lockQueue } from '../../src/diskqueue/open-log.ts';
import { LogLock } from '../../src/log/log-lock.ts';
import { EmbeddedBroker } from '../../src/tasks/broker/embedded/embedded-broker.ts';
import { Random } from './random.ts';
import { FIRST_SEED, runs } from '../runs.ts';
import { leaveContender } from './support/left-contender.ts';
import { FORMATS, openQueue, rejection, temporaryFolder } from './support/queues.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const LOCKED = { name: 'EscapementError', code: 'ERR_QUEUE_LOCKED', op: 'DiskQueue.open' };
const NAMESPACE = ['--user', '--map-root-user', '--net'];
/** Where the system allows it, each contender has a network of its own, as in a container. */
const hasNamespaces = spawnSync('unshare', [...NAMESPACE, 'true']).status === 0;

/** Longest series of races, in milliseconds: processes start slowly on a busy machine. */
const MOST_MS = 180_000;

const LISTENS_TO_LINES = `
  import { createInterface } from 'node:readline';
  import { DiskQueue } from 'escapement/diskqueue';
  const say = (line) => process.stdout.write(line + '\\n');
  let queue;
  for await (const line of createInterface({ input: process.stdin })) {
    const { platform, ...options } = JSON.parse(line);
    Object.defineProperty(process, 'platform', { value: platform });
    if (options.name === undefined) await queue.close().then(() => say('closed'));
    else await DiskQueue.open(options).then((opened) => { queue = opened; say('open'); }, (error) => say(error.code));
  }`;

/** Where a contender opens a queue: the platform decides how a socket is reached. */
interface Place {
  readonly platform: string;
  readonly dataPath: string;
  readonly name: string;
}

/** A process that opens a queue on command. */
class Contender {
  readonly process: ChildProcessWithoutNullStreams;
  readonly #lines: AsyncIterator<string>;

  constructor() {
    const node = [process.execPath, '--input-type=module', '--eval', LISTENS_TO_LINES];
    const [program = '', ...words] = hasNamespaces ? ['unshare', ...NAMESPACE, ...node] : node;
    // One that is killed while it opens leaves a link in its folder of temporary files.
    const env = { ...process.env, TMPDIR: temporaryFolder() };
    this.process = spawn(program, words, { cwd: ROOT, env });
    this.process.stdin.on('error', () => undefined); // it was killed
    this.#lines = createInterface({ input: this.process.stdout })[Symbol.asyncIterator]();
    onTestFinished(() => void this.process.kill('SIGKILL'));
  }

  get isAlive(): boolean {
    return this.process.signalCode === null;
  }

  /** @returns what came of it; undefined if it was killed. */
  async open(place: Place): Promise<string | undefined> {
    return this.#ask(place);
  }

  async close({ platform }: Place): Promise<void> {
    expect(await this.#ask({ platform })).toBe('closed');
  }

  async kill(): Promise<void> {
    if (!this.isAlive) return;
    const ended = once(this.process, 'exit');
    this.process.kill('SIGKILL');
    await ended;
  }

  async #ask(question: object): Promise<string | undefined> {
    this.process.stdin.write(`${JSON.stringify(question)}\n`);
    const line = await this.#lines.next();
    return line.done === true ? undefined : line.value;
  }
}

/** Contenders that live on from race to race. */
class Contenders {
  #all: Contender[] = [];

  take(count: number): Contender[] {
    this.#all = this.#all.filter(({ isAlive }) => isAlive);
    while (this.#all.length < count) this.#all.push(new Contender());
    return this.#all.slice(0, count);
  }
}

/** A folder whose sockets have a path that is too long, and whose name for the queue is as long as it may be. */
function longPlace(platform: string): Place {
  const dataPath = join(temporaryFolder(), 'folder'.repeat(20));
  mkdirSync(dataPath);
  return { platform, dataPath, name: 'x'.repeat(150) };
}

function shortPlace(platform: string): Place {
  return { platform, dataPath: temporaryFolder(), name: 'spool' };
}

function lockFiles({ dataPath }: Place): string[] {
  return readdirSync(dataPath).filter((name) => name.includes('.lock'));
}

function onPlatform(platform: string): void {
  const { platform: real } = process;
  Object.defineProperty(process, 'platform', { value: platform });
  onTestFinished(() => void Object.defineProperty(process, 'platform', { value: real }));
}

const PLACES = [
  ['this system', () => shortPlace(process.platform)],
  ['this system, with long names', () => longPlace(process.platform)],
  ['macOS', () => shortPlace('darwin')],
  ['macOS, with long names', () => longPlace('darwin')],
] as const;

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

describe.skipIf(process.platform === 'win32').each(PLACES)('the lock, on %s', (_, makePlace) => {
  test(
    'a dead owner is replaced by exactly one of the processes that open at once',
    { timeout: MOST_MS },
    async () => {
      const contenders = new Contenders();
      for (let race = 0; race < runs(6); race++) {
        const place = makePlace();
        const [dead] = contenders.take(1);
        expect(await dead?.open(place)).toBe('open');
        await dead?.kill();
        const rivals = contenders.take(2 + (race % 3));
        const results = await Promise.all(rivals.map((rival) => rival.open(place)));
        expect(results.toSorted()).toEqual([...rivals.slice(1).map(() => 'ERR_QUEUE_LOCKED'), 'open']);
        await rivals[results.indexOf('open')]?.close(place);
        expect(lockFiles(place)).toEqual([]);
      }
    },
  );

  test(
    'contenders that are killed while they open leave at most one owner, and no obstacle',
    { timeout: MOST_MS },
    async () => {
      const contenders = new Contenders();
      const random = new Random(FIRST_SEED);
      for (let race = 0; race < runs(6); race++) {
        const place = makePlace();
        const rivals = contenders.take(3);
        const opening = rivals.map((rival) => rival.open(place));
        for (let turns = random.below(3_000); turns > 0; turns--) await new Promise(setImmediate);
        await rivals[race % 3]?.kill();
        const results = await Promise.all(opening);
        const owners = rivals.filter((rival, i) => rival.isAlive && results[i] === 'open');
        expect(owners.length).toBeLessThanOrEqual(1);
        const [last] = contenders.take(3).filter((contender) => !owners.includes(contender));
        expect(await last?.open(place)).toBe(owners.length === 1 ? 'ERR_QUEUE_LOCKED' : 'open');
        await (owners[0] ?? last)?.close(place);
        expect(lockFiles(place)).not.toContain(`${place.name}.lock`); // a killed contender may leave its own folder
      }
    },
  );

  test('a second owner in the same process is refused, and leaves nothing behind', async () => {
    const { platform, dataPath, name } = makePlace();
    onPlatform(platform);
    const links = temporaryFolder();
    vi.stubEnv('TMPDIR', links);
    const lock = await LogLock.acquire(dataPath, name);
    expect(await LogLock.isHeld(dataPath, name)).toBe(true);
    expect(await rejection(lockQueue(dataPath, name))).toMatchObject(LOCKED);
    expect(readdirSync(dataPath)).toEqual([`${name}.lock`]);
    await lock.release();
    await lock.release();
    expect(await LogLock.isHeld(dataPath, name)).toBe(false);
    expect([readdirSync(dataPath), readdirSync(links)]).toEqual([[], []]);
  });
});

describe.skipIf(process.platform === 'win32')('an owner', () => {
  test('a paused owner stays the owner when its backlog is full', async () => {
    const place = shortPlace(process.platform);
    const { dataPath, name } = place;
    const [owner] = new Contenders().take(1);
    await owner?.open(place);
    owner?.process.kill('SIGSTOP');
    await fillBacklog(join(dataPath, `${name}.lock`));
    expect(await rejection(openQueue({ dataPath, name }))).toMatchObject(LOCKED);
    expect(await LogLock.isHeld(dataPath, name)).toBe(true);
    owner?.process.kill('SIGCONT');
    await owner?.close(place);
    expect((await openQueue({ dataPath, name })).depth).toBe(0);
  });

  test('an owner of another user stays the owner, and the error names that', async () => {
    const { dataPath, name } = shortPlace(process.platform);
    const lock = join(dataPath, `${name}.lock`);
    await openQueue({ dataPath, name });
    const refused = { ...LOCKED, message: expect.stringContaining('by another user') as string };
    const asOther = becomeOther([lock, dataPath]);
    expect(await asOther(() => rejection(lockQueue(dataPath, name)))).toMatchObject(refused);
    expect(await asOther(() => LogLock.isHeld(dataPath, name))).toBe(true);
    chmodSync(lock, 0o755); // it can be listed now, and not connected to
    const asOtherStill = becomeOther([join(lock, readdirSync(lock)[0] ?? ''), dataPath]);
    expect(await asOtherStill(() => rejection(lockQueue(dataPath, name)))).toMatchObject(refused);
  });

  test('an owner keeps its queue when the folder is renamed, and does not own a copy of it', async () => {
    const { dataPath, name } = shortPlace(process.platform);
    const [folder, copy, moved] = [`${dataPath}/folder`, `${dataPath}/copy`, `${dataPath}/moved`];
    const queue = await openQueue({ dataPath: folder, name });
    execFileSync('cp', ['-a', folder, copy]);
    expect(await LogLock.isHeld(copy, name)).toBe(false);
    await openQueue({ dataPath: copy, name });
    renameSync(folder, moved);
    expect(await rejection(lockQueue(moved, name))).toMatchObject(LOCKED);
    await queue.close();
    const lock = await LogLock.acquire(moved, name);
    await lock.release();
  });
});

describe.skipIf(process.platform === 'win32')('a contender', () => {
  const listen = LocalSocket.listen.bind(LocalSocket);

  test('a contender that was overtaken is refused, and leaves nothing behind', async () => {
    const { dataPath, name } = shortPlace(process.platform);
    let winner: LogLock | undefined;
    vi.spyOn(LocalSocket, 'listen').mockImplementationOnce(async (folder, file) => {
      const socket = await listen(folder, file);
      winner = await LogLock.acquire(dataPath, name);
      return socket;
    });
    expect(await rejection(lockQueue(dataPath, name))).toMatchObject(LOCKED);
    expect(readdirSync(dataPath)).toEqual([`${name}.lock`]);
    await winner?.release();
    expect(readdirSync(dataPath)).toEqual([]);
  });

  test('the folder of a killed contender stays, and is no obstacle', async () => {
    const { dataPath, name } = shortPlace(process.platform);
    const left = leaveContender(dataPath, name);
    for (const format of FORMATS) {
      const queue = await openQueue({ dataPath, name, format });
      await queue.put(Buffer.from('message'));
      await queue.close();
      expect(await LogLock.isHeld(dataPath, name)).toBe(false);
      const again = await openQueue({ dataPath, name, format });
      expect(again.depth).toBe(1);
      await again.delete();
      expect(readdirSync(dataPath)).toEqual([left]);
    }
  });

  test('a file system without sockets is refused, with an error that names the reason', async () => {
    const { dataPath, name } = shortPlace(process.platform);
    const failure = Object.assign(new Error('listen EPERM'), { code: 'EPERM', syscall: 'listen' });
    vi.spyOn(LocalSocket, 'listen').mockRejectedValue(failure);
    expect(await rejection(openQueue({ dataPath, name }))).toMatchObject({
      ...{ code: 'ERR_QUEUE_IO', cause: failure },
      message: expect.stringContaining(`${dataPath} cannot hold a Unix socket`) as string,
    });
    expect(await rejection(EmbeddedBroker.open({ dataPath }))).toMatchObject({
      ...{ code: 'ERR_BROKER_UNAVAILABLE', op: 'EmbeddedBroker.open', cause: failure },
      message: `the file system of ${dataPath} cannot hold a Unix socket, which a lock needs (EPERM)`,
    });
    expect(readdirSync(dataPath)).toEqual([]);
  });

  test('a lock replaces a file of its name, and a folder with other files', async () => {
    const { dataPath, name } = shortPlace(process.platform);
    const path = join(dataPath, `${name}.lock`);
    writeFileSync(path, '');
    await (await LogLock.acquire(dataPath, name)).release();
    mkdirSync(path);
    for (const file of ['.DS_Store', 'x'.repeat(200)]) writeFileSync(join(path, file), '');
    await (await LogLock.acquire(dataPath, name)).release();
    expect(readdirSync(dataPath)).toEqual([]);
  });
});

/** Connects until the kernel refuses: the owner accepts nothing. */
async function fillBacklog(lock: string): Promise<void> {
  const path = join(lock, readdirSync(lock)[0] ?? '');
  for (let refused = false; !refused;) {
    const socket = createConnection(path);
    refused = await Promise.race([
      once(socket, 'connect').then(() => false),
      once(socket, 'error').then(() => true),
    ]).catch(() => true);
    socket.destroy();
  }
}

/** Who may not use some paths, but write to the folder that comes last: another user, or one without the permissions. */
function becomeOther(paths: readonly string[]): <R>(action: () => Promise<R>) => Promise<R> {
  const [forbidden = '', folder = ''] = paths;
  return async (action) => {
    const isRoot = process.geteuid?.() === 0;
    const { mode } = statSync(forbidden);
    chmodSync(folder, 0o777);
    if (isRoot) process.seteuid?.(65_534);
    else chmodSync(forbidden, 0);
    try {
      return await action();
    } finally {
      if (isRoot) process.seteuid?.(0);
      else chmodSync(forbidden, mode & 0o777);
    }
  };
}
