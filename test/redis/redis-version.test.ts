import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { requireRecentRedis } from './redis-version.ts';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'escapement-version-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

function thatSays(text: string): string {
  const path = join(folder, 'redis-server');
  writeFileSync(path, `#!/bin/sh\necho '${text}'\n`, { mode: 0o755 });
  return path;
}

it.each([
  'Redis server v=6.2.0 sha=00000000:0 malloc=jemalloc-5.1.0 bits=64 build=1',
  'Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=1',
  'Redis server v=10.1.0 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=1',
  'Valkey server v=8.0.1 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=1',
])('takes %s', (version) => {
  requireRecentRedis(thatSays(version));
});

it.each(['Redis server v=6.0.16 sha=00000000:0', 'Redis server v=5.3.0 sha=0', 'something else'])(
  'refuses %s',
  (version) => {
    const program = thatSays(version);
    const message = `The tests need Redis 6.2 or later, or Valkey. ${program} is '${version}'`;
    expect(() => {
      requireRecentRedis(program);
    }).toThrow(message);
  },
);
