import { expect, it } from 'vitest';
import { connectionOf } from '../../src/cli/tasks/connection.ts';
import { goDuration, time, wholeNumber } from '../../src/cli/options.ts';
import { HttpTarget } from '../../src/cli/tasks/target/http-target.ts';
import { parseRedisUrl } from '../../src/tasks/broker/redis/connection-options.ts';
import { parseCronSpec } from '../../src/tasks/scheduler/cron-spec.ts';
import { parseGoDuration } from '../../src/tasks/go-text.ts';

/** What the text consists of, again and again; and how it ends, so that it is not what the parser wants. */
const UNITS = ['1', 'a', ' ', '/', '@', ':', ',', '.', '-', '*', '%', '\\', '"', '1s', '*,', '%41', '\ud800'];
const ENDS = ['', '!', '#', '/x'];

/** In characters. Shorter ones first: they show a cubic parser in seconds, and the longest a quadratic one. */
const LENGTHS = [2_000, 20_000, 100_000];

/** Of the processor, which a busy machine changes little. A linear parser takes milliseconds. */
const MOST_MS = 2_000;

const redisUrl = (text: string): unknown => parseRedisUrl('url', text);
const uri = (text: string): unknown => connectionOf({ uri: text }, {});

it.each<[string, (text: string) => unknown, readonly string[]]>([
  ['cron spec', (text) => parseCronSpec(text), ['', '@', '@every ', 'CRON_TZ=', '* * * * ', '0/', '1-']],
  ['time zone', (text) => parseCronSpec('* * * * *', text), ['', 'Europe/']],
  ['duration', parseGoDuration, ['', '-', '1s', '1.', '.']],
  ['URL of Redis', redisUrl, ['', 'redis://', 'redis://u:p@', 'redis://h/', 'redis://h?', 'redis://[']],
  ['URL of Redis with other hosts', redisUrl, ['redis-socket://', 'redis-sentinel://', 'redis-cluster://']],
  [
    '--uri',
    uri,
    ['', 'ftp://', 'redis://', 'redis://u:p@', 'redis://h/', 'http://', 'http://h/', 'http://h?'],
  ],
  ['--cluster_addrs', (text) => connectionOf({ cluster_addrs: text }, {}), ['']],
  ['--http_header', (text) => connectionOf({ uri: 'http://h', http_header: [text] }, {}), ['', 'a:']],
  ['URL of the HTTP API', (text) => new HttpTarget(new URL(text), {}, AbortSignal.abort()), ['http://h/']],
  ['whole number', wholeNumber(0), ['']],
  ['--timeout', goDuration(0), ['']],
  ['--deadline', time, ['', '2026-11-21T12:00:00.']],
])('100 000 characters are read or refused in time as a %s', (_, parse, beginnings) => {
  for (const length of LENGTHS) {
    for (const text of textsOf(beginnings, length)) {
      const before = process.cpuUsage();
      outcomeOf(parse, text);
      const { user, system } = process.cpuUsage(before);
      const tookMs = (user + system) / 1_000;
      expect(tookMs, `${length} characters: ${text.slice(0, 30)}… ${text.slice(-3)}`).toBeLessThan(MOST_MS);
    }
  }
});

function* textsOf(beginnings: readonly string[], length: number): Generator<string> {
  for (const beginning of beginnings) {
    for (const unit of UNITS) {
      for (const end of ENDS) yield beginning + unit.repeat(Math.ceil(length / unit.length)) + end;
    }
  }
}

function outcomeOf(parse: (text: string) => unknown, text: string): unknown {
  try {
    return parse(text);
  } catch (error) {
    return error;
  }
}
