/** Every example, run as a person runs it. */
import { readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { describe, expect, it } from 'vitest';
import { listen } from '../listen.ts';
import { spawnNode } from '../run-program.ts';
import {
  bundleExample,
  endOf,
  eventually,
  interruptExample,
  isRunning,
  numberBefore,
  pidsIn,
  runExample,
  startExample,
  widthOf,
  type ExampleRun,
} from './support.ts';

const EXAMPLES = ['request-deadlines', 'replicated-log', 'controller', 'spool', 'jobs'];
const bundles = new Map(EXAMPLES.map((name) => [name, bundleExample(name)]));
const startBundle = (name: string, ...options: string[]): ReturnType<typeof spawnNode> =>
  spawnNode([bundles.get(name) ?? '', ...options]);

const ON_POSIX = process.platform !== 'win32';

/** Folders that examples have made and not removed. */
function leftFolders(): string[] {
  return readdirSync(tmpdir()).filter((name) => /^escapement-(controller|spool|shop)-/.test(name));
}

it('the demo answers or times out every request, none early and as many as the distribution of the backend predicts', async () => {
  const { code, stdout, stderr } = await runExample(
    startExample('request-deadlines', '--duration', '3', '--rate', '500'),
  );

  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(widthOf(stdout)).toBeLessThanOrEqual(80);
  const [atServer = '', atClients = ''] = stdout
    .split('\n')
    .filter((line) => /requests:|clients:/.test(line));
  const requests = numberBefore('requests', atServer);
  const [answered, timedOut] = [numberBefore('answered', atServer), numberBefore('timed out', atServer)];
  expect({ requests, sum: answered + timedOut }).toEqual({ requests: 1_500, sum: 1_500 });
  expect(atServer).toContain(' 0 abandoned');
  expect(numberBefore('answered', atClients)).toBe(answered);
  expect(numberBefore('timed out', atClients)).toBe(timedOut);
  expect(atClients).toContain(' 0 failed');
  // P(work > 500 ms) is 9.53 %; beyond five standard deviations chance is no excuse.
  const deviation = Math.sqrt((0.0953 * 0.9047) / requests);
  expect(Math.abs(timedOut / requests - 0.0953)).toBeLessThan(5 * deviation);
  expect(stdout).toContain('; 0 were early.');
  expect(stdout).toContain('; 0 are left.');
  expect(numberBefore('timeouts of the host', stdout)).toBeLessThan(numberBefore('timers took', stdout));
});

it.runIf(ON_POSIX)(
  'the demo ends at Ctrl-C with 130, after every request that was sent is answered',
  async () => {
    const { code, stdout } = await interruptExample(
      startExample('request-deadlines', '--duration', '60'),
      /^ +\d+ +[1-9]/, // a line of the table with requests that are answered
    );

    expect(code).toBe(130);
    const accounted = numberBefore('answered', stdout) + numberBefore('timed out', stdout);
    expect(accounted).toBe(numberBefore('requests:', stdout));
    expect(stdout).toContain('; 0 are left.');
  },
);

it('the replicated log goes on without a follower that is killed, takes it back, and has every record on all replicas', async () => {
  const { code, stdout, stderr } = await runExample(startExample('replicated-log', '--duration', '2'));

  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(widthOf(stdout)).toBeLessThanOrEqual(80);
  expect(stdout).toMatch(
    /both followers are in sync[^]*killed with SIGKILL[^]*session of follower-1 has ended[^]*in sync again/,
  );
  const [writes, consumed] = [numberBefore('writes', stdout), numberBefore('records were consumed', stdout)];
  const expired = Number(/acknowledged, ([\d,]+) expired \(504\), 0 failed/.exec(stdout)?.[1]);
  expect(expired).toBeGreaterThan(0);
  expect(numberBefore('acknowledged, [\\d,]+ expired \\(504\\), 0', stdout)).toBe(writes - expired);
  expect(consumed).toBe(writes + Math.floor(writes / 3));
  for (const follower of ['follower-1', 'follower-2'])
    expect(numberBefore(`records are at ${follower}`, stdout)).toBe(consumed);
  expect(stdout).toContain('\n0 operations are still watched');
  expect(pidsIn(stdout)).toHaveLength(3);
  expect(pidsIn(stdout).filter(isRunning)).toEqual([]);
});

it.runIf(ON_POSIX)('the replicated log ends at Ctrl-C with 130, and leaves no process', async () => {
  const { code, stdout } = await interruptExample(
    startExample('replicated-log', '--duration', '60'),
    /written/,
  );

  expect(code).toBe(130);
  expect(pidsIn(stdout)).toHaveLength(2);
  expect(pidsIn(stdout).filter(isRunning)).toEqual([]);
});

it('the replicated log leaves no follower when it is killed itself', async () => {
  const log = startExample('replicated-log');
  const { stdout } = await runExample(log, (line) => {
    if (line.includes('both followers are in sync')) log.kill('SIGKILL');
  });

  await eventually(() => expect(pidsIn(stdout).filter(isRunning)).toEqual([]));
});

describe('the other examples', () => {
  it('the controller renders, retries, gives up, repairs and removes, and leaves no folder', async () => {
    const { code, stdout, stderr } = await runExample(startExample('controller'));

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(widthOf(stdout)).toBeLessThanOrEqual(80);
    expect(stdout).toMatch(/gave up {2}shop\/stock\.json: [^]*is repaired[^]*written {2}shop\/stock\.json/);
    expect(stdout).toMatch(/an output is removed[^]*written {2}mail\.json/);
    expect(stdout).toContain('removed  shop/prices.json');
    expect(leftFolders()).toEqual([]);
  });

  it('the spool brings every line through the SIGKILL of its shipper, in order, and leaves no folder', async () => {
    const { code, stdout, stderr } = await runExample(startExample('spool'));

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(widthOf(stdout)).toBeLessThanOrEqual(80);
    expect(stdout).toMatch(/killed with SIGKILL[^]*1,500 lines have arrived[^]*every line, in order/);
    expect(pidsIn(stdout)).toHaveLength(2);
    expect(pidsIn(stdout).filter(isRunning)).toEqual([]);
    expect(leftFolders()).toEqual([]);
  });

  it('the shop charges every order but the declined one, and puts all of them on pick lists', async () => {
    const { code, stdout, stderr } = await runExample(startExample('jobs'));

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(widthOf(stdout)).toBeLessThanOrEqual(80);
    expect(stdout.match(/has sent 6 orders: 6 are charged/g)).toHaveLength(2);
    expect(stdout).toMatch(/carol-1: the card is declined[^]*carol orders for 5 million: archived/);
    expect(stdout).toContain('dave orders for nothing: refused with 400');
    expect(stdout).toMatch(/the payment provider answers 503[^]*: done, at run 2/);
    expect(stdout).toMatch(/report of today: \d+ runs of payments, \d+ of them failed/);
    const listed = [...stdout.matchAll(/pick list for leipzig: (.*)/g)].flatMap(([, ids = '']) =>
      ids.split(' '),
    );
    const paid = ['ada', 'bob'].flatMap((name) => [1, 2, 3, 4, 5, 6].map((index) => `${name}-${index}`));
    expect(listed.sort()).toEqual(paid);
  });

  it.runIf(ON_POSIX).each([
    ['controller', /mail\.json/],
    ['spool', /a shipper/],
    ['jobs', /what is queued/],
  ])('%s ends at Ctrl-C with 130, and leaves nothing', async (name, when) => {
    const { code, stdout } = await interruptExample(startBundle(name), when);

    expect(code).toBe(130);
    expect(stdout).toContain('interrupted');
    expect(pidsIn(stdout).filter(isRunning)).toEqual([]);
    expect(leftFolders()).toEqual([]);
  });
});

it('the shop reports that its port is in use, and ends with 1', async () => {
  const port = await listen(() => undefined);
  const run = await runExample(
    startBundle('jobs', '--payments', 'http://127.0.0.1/', '--port', String(port)),
  );

  expect(run.code).toBe(1);
  expect(run.stderr).toMatch(/^error: listen EADDRINUSE.*\n$/);
});

describe.concurrent('the command lines of the examples', () => {
  const runCommand = (name: string, ...options: string[]): Promise<ExampleRun> =>
    endOf(startBundle(name, ...options));

  it.each(EXAMPLES)('%s explains its options in 80 columns', async (name) => {
    const { code, stdout } = await runCommand(name, '--help');

    expect(code).toBe(0);
    expect(stdout).toMatch(/^Usage: npm run [\w:-]+ --/);
    expect(widthOf(stdout)).toBeLessThanOrEqual(80);
  });

  it.each([
    ['request-deadlines', ['--rate', '-5']],
    ['request-deadlines', ['--timeout-ms', 'NaN']],
    ['request-deadlines', ['--duration', '']],
    ['replicated-log', ['--duration', '0']],
    ['controller', ['--workers', '1.5']],
    ['spool', ['--max-bytes', '1000']],
    ['spool', ['--durability', 'never']],
    ['spool', ['--forward', 'ftp://host/']],
    ['jobs', ['--port', '70000']],
  ])('%s ends with 2 at %j, and names the option and the value', async (name, [option = '', value = '']) => {
    const { code, stdout, stderr } = await runCommand(name, option, value);

    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(new RegExp(`option '${option} .* argument '${value}' is invalid`));
  });

  it.each([
    ['request-deadlines', ['--reqests', '5'], "unknown option '--reqests'"],
    ['jobs', ['now'], 'too many arguments'],
    ['spool', ['--spool', 'here'], '--spool and --forward go together'],
    ['controller', ['--source', 'docs'], '--source and --output go together'],
    ['controller', ['--source', 'docs', '--output', 'docs/out'], 'must not be inside each other'],
    ['controller', ['--source', 'no-such', '--output', 'out'], '--source must be a directory'],
  ])('%s ends with 2 at %j: %s', async (name, options, message) => {
    const { code, stdout, stderr } = await runCommand(name, ...options);

    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(message);
  });
});
