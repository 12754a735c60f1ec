import { chmodSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { folderOfTest } from '../folder.ts';
import { findRedis, requireRedisProgram } from './find-redis.ts';
import { installRedis } from './install-redis.ts';
import type { System } from './system.ts';

let folder: string;
let path: string;
let commands: string[];
let said: string[];

beforeEach(() => {
  folder = folderOfTest();
  path = join(folder, 'bin');
  mkdirSync(path);
  commands = [];
  said = [];
});

const SAYS_VERSION = "echo 'Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=1'";

/** A program on the PATH, in the words of a shell that finds nothing but what the test has made. */
function program(name: string, script = SAYS_VERSION): void {
  const file = join(path, name);
  writeFileSync(file, `#!/bin/sh\n${script}\n`);
  chmodSync(file, 0o755);
}

/** What an installer does for us. */
const INSTALLS_REDIS = `printf '#!/bin/sh\\necho v=7.0.15\\n' > "$BIN/redis-server"; /bin/chmod +x "$BIN/redis-server"`;

/** A machine with no more than the fakes; its commands are really run. */
function machine({ isRoot = true, ...env }: { isRoot?: boolean; REDIS_URL?: string } = {}): System {
  return {
    env: { PATH: `/nowhere:${path}`, ...env },
    isRoot,
    run: (name, args) => {
      commands.push([name, ...args].join(' '));
      const { status } = spawnSync(name, args, { env: { PATH: path, BIN: path } });
      return Promise.resolve(status === 0);
    },
    say: (message) => said.push(message),
  };
}

/** As the real one: settings first, then a command. */
const ENV = 'while case "$1" in *=*) true;; *) false;; esac; do shift; done; "$@"';

describe('Redis for the tests', () => {
  it('the tests use REDIS_URL whatever is on the PATH', () => {
    program('redis-server');
    expect(findRedis(machine({ REDIS_URL: 'redis://there:1' }))).toEqual({ url: 'redis://there:1' });
  });

  it.each(['redis-server', 'valkey-server'])('the tests use %s on the PATH', (name) => {
    program(name);
    expect(findRedis(machine({ REDIS_URL: '' }))).toEqual({ program: join(path, name) });
    expect(commands).toEqual([]);
  });

  it('the tests use redis-server if both programs are there', () => {
    program('valkey-server');
    program('redis-server');
    expect(findRedis(machine())).toEqual({ program: join(path, 'redis-server') });
  });

  it('the tests do not use a file that is not executable, or a folder', () => {
    writeFileSync(join(path, 'redis-server'), '');
    mkdirSync(join(path, 'valkey-server'));
    expect(findRedis(machine())).toEqual({ lack: 'Redis is not on the PATH.' });
  });

  it.each([
    ['Redis server v=6.2.0 sha=00000000:0 malloc=jemalloc-5.1.0 bits=64 build=1', true],
    ['Redis server v=10.1.0 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=1', true],
    ['Valkey server v=8.0.1 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=1', true],
    ['Redis server v=6.0.16 sha=00000000:0', false],
    ['Redis server v=5.3.0 sha=0', false],
    ['something else', false],
  ])('the version %s is recent enough: %j', (version, isRecent) => {
    program('redis-server', `echo '${version}'`);
    const found = join(path, 'redis-server');
    const lack = `The tests need Redis 6.2 or later, or Valkey. ${found} is '${version}'.`;
    expect(findRedis(machine())).toEqual(isRecent ? { program: found } : { lack });
  });

  it('the tests use valkey-server if redis-server is too old', () => {
    program('redis-server', "echo 'Redis server v=6.0.16'");
    program('valkey-server');
    expect(findRedis(machine())).toEqual({ program: join(path, 'valkey-server') });
  });

  it('the tests do not use a program that fails', () => {
    program('redis-server', 'exit 1');
    expect(findRedis(machine())).toEqual({ lack: expect.stringContaining('Command failed') as string });
  });

  it('a server of our own needs a program on the PATH, also with REDIS_URL', () => {
    const system = machine({ REDIS_URL: 'redis://there:1' });
    expect(() => requireRedisProgram(system)).toThrow('npm run test:setup');
    program('valkey-server');
    expect(requireRedisProgram(system)).toBe(join(path, 'valkey-server'));
  });
});

describe('npm run test:setup', () => {
  beforeEach(() => program('env', ENV));

  it('test:setup installs Redis as root', async () => {
    program('apt-get', INSTALLS_REDIS);
    expect(await installRedis(machine())).toBe(join(path, 'redis-server'));
    expect(commands).toEqual([
      'env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends redis-server',
    ]);
    expect(said).toEqual(['installing Redis with apt-get']);
  });

  it('test:setup fetches the list of packages if Redis is not in it', async () => {
    program('apt-get', `[ "$1" = update ] && : > "$BIN/list"; [ -e "$BIN/list" ] && { ${INSTALLS_REDIS}; }`);
    expect(await installRedis(machine())).toBe(join(path, 'redis-server'));
    expect(commands.map((command) => command.replace(/.*apt-get /, ''))).toEqual([
      'install --yes --no-install-recommends redis-server',
      'install --yes --no-install-recommends valkey-server',
      'update',
      'install --yes --no-install-recommends redis-server',
    ]);
  });

  it.each(['dnf', 'yum', 'apk', 'zypper', 'pacman'])('test:setup installs with %s', async (manager) => {
    program(manager, `for package; do :; done; [ $package = valkey ] && { ${INSTALLS_REDIS}; }`);
    expect(await installRedis(machine())).toBe(join(path, 'redis-server'));
    expect(said).toEqual([`installing Redis with ${manager}`]);
  });

  it('test:setup installs with a sudo that needs no password', async () => {
    program('apt-get', `[ -n "$AS_ROOT" ] && { ${INSTALLS_REDIS}; }`);
    program('true');
    program('sudo', '[ "$1" = --non-interactive ] && shift && AS_ROOT=yes "$@"');
    expect(await installRedis(machine({ isRoot: false }))).toBe(join(path, 'redis-server'));
  });

  it('test:setup installs with brew as a user, and never as root', async () => {
    program('brew', INSTALLS_REDIS);
    await expect(installRedis(machine())).rejects.toThrow('Redis is not on the PATH');
    expect(await installRedis(machine({ isRoot: false }))).toBe(join(path, 'redis-server'));
    expect(commands).toEqual(['env DEBIAN_FRONTEND=noninteractive brew install redis']);
  });

  it.each([
    ['there is no package manager', true, {}],
    ['there is no sudo', false, { 'apt-get': INSTALLS_REDIS }],
    ['sudo needs a password', false, { 'apt-get': INSTALLS_REDIS, sudo: 'exit 1' }],
    ['Redis cannot be installed', true, { 'apt-get': 'exit 100' }],
  ])('test:setup rejects if %s, and installs nothing', async (_, isRoot, programs) => {
    for (const [name, script] of Object.entries(programs)) program(name, script);
    await expect(installRedis(machine({ isRoot }))).rejects.toThrow(
      /^Redis is not on the PATH\. .*apt-get install redis-server.*REDIS_URL/,
    );
    expect(readdirSync(path)).toEqual([...Object.keys(programs), 'env'].sort());
  });
});
