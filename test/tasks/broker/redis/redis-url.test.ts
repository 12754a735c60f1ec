import { describe, expect, it } from 'vitest';
import { parseRedisUrl } from '../../../../src/tasks/broker/redis/connection-options.ts';

const server = { kind: 'server', isTls: false, db: 0, server: { host: 'there', port: 6379 } };
const sentinel = {
  kind: 'sentinel',
  isTls: false,
  db: 0,
  master: 'm',
  sentinels: [
    { host: 'one', port: 26_379 },
    { host: 'two', port: 5 },
  ],
};
const cluster = {
  kind: 'cluster',
  isTls: false,
  nodes: [
    { host: 'one', port: 6379 },
    { host: '::1', port: 7000 },
  ],
};

describe('a URL of Redis', () => {
  it.each([
    ['redis://there', server],
    ['redis://there/', server],
    ['redis://', { ...server, server: { host: 'localhost', port: 6379 } }],
    ['redis://there:7000/3', { ...server, db: 3, server: { host: 'there', port: 7000 } }],
    ['redis://[::1]:7000', { ...server, server: { host: '::1', port: 7000 } }],
    ['redis://:secret@there', { ...server, password: 'secret' }],
    ['redis://me:secret@there', { ...server, username: 'me', password: 'secret' }],
    ['redis://me@there', { ...server, username: 'me' }],
    ['redis://m%40e:s%3A%2F%3F%23%40%25@there', { ...server, username: 'm@e', password: 's:/?#@%' }],
    ['redis://:a:b@there', { ...server, password: 'a:b' }],
    ['redis://:a@b@there', { ...server, password: 'a@b' }],
    ['rediss://there', { ...server, isTls: true }],
  ])('the URL of a server is parsed: %s', (url, address) => {
    expect(parseRedisUrl('url', url)).toEqual(address);
  });

  it.each([
    ['redis-socket:///run/redis.sock', { db: 0, path: '/run/redis.sock' }],
    ['redis-socket://:pw@/run/my%20redis.sock?db=4', { db: 4, path: '/run/my redis.sock', password: 'pw' }],
  ])('the URL of a socket is parsed: %s', (url, address) => {
    expect(parseRedisUrl('url', url)).toEqual({ kind: 'socket', isTls: false, ...address });
  });

  it.each([
    ['redis-sentinel://one,two:5?master=m', sentinel],
    ['redis-sentinel://one,two:5/7?master=m', { ...sentinel, db: 7 }],
    ['redis-sentinel://:pw@one,two:5?master=m', { ...sentinel, password: 'pw' }],
    ['redis-sentinel://one,two:5?master=my%20m', { ...sentinel, master: 'my m' }],
    ['rediss-sentinel://one,two:5?master=m', { ...sentinel, isTls: true }],
  ])('the URL of sentinels is parsed: %s', (url, address) => {
    expect(parseRedisUrl('url', url)).toEqual(address);
  });

  it.each([
    ['redis-cluster://one,[::1]:7000', cluster],
    ['redis-cluster://me:pw@one,[::1]:7000/0', { ...cluster, username: 'me', password: 'pw' }],
    ['rediss-cluster://one,[::1]:7000', { ...cluster, isTls: true }],
  ])('the URL of a cluster is parsed: %s', (url, address) => {
    expect(parseRedisUrl('url', url)).toEqual(address);
  });
});

describe('a URL that is not valid', () => {
  it.each([
    ['', 'begins with redis://'],
    ['there:6379', 'begins with redis://'],
    ['http://there', 'begins with redis://'],
    ['REDIS://there', 'begins with redis://'],
    ['redis://there#fragment', 'begins with redis://'],
    ['redis://there:0', 'with hosts as in'],
    ['redis://there:65536', 'with hosts as in'],
    ['redis://there:port', 'with hosts as in'],
    ['redis://::1', 'with hosts as in'],
    ['redis://one,two', 'with hosts as in'],
    ['redis-cluster://one,,two', 'with hosts as in'],
    ['redis-cluster://', 'with hosts as in'],
    ['redis-cluster://one/1', 'a cluster has only 0'],
    ['redis://there/one', 'the number of a database'],
    ['redis://there/-1', 'the number of a database'],
    ['redis-socket:///path?db=x', 'the number of a database'],
    ['redis-socket://path/to', 'an absolute path'],
    ['redis-socket:///', 'an absolute path'],
    ['redis-sentinel://one', 'names the primary'],
    ['redis-sentinel://one?master=', 'names the primary'],
    ['redis-sentinel://one?master=m&db=1', 'without ?db='],
    ['redis://there?db=1', 'without ?db='],
    ['redis://a%2@there', 'percent signs'],
    ['redis://there%zz', 'percent signs'],
  ])('a URL that is not valid is rejected: %s', (url, message) => {
    expect(() => parseRedisUrl('options.url', url)).toThrow(
      expect.objectContaining({
        name: 'TypeError',
        code: 'ERR_INVALID_ARG_VALUE',
        message: expect.stringMatching(/^options\.url must be a URL /) as string,
      }),
    );
    expect(() => parseRedisUrl('options.url', url)).toThrow(message);
  });

  it.each([
    'redis://me:secret@there:port',
    'redis://me:sec/secret@there',
    'redis://me:sec@secret@there:port',
    'redis://me:sec%zsecret@there',
    'redis://me:s#secret@there',
    'me:secret@there',
    'redis-sentinel://:secret@there',
    'redis-socket://:secret@there/path',
    'HTTP://me:secret\n@there',
  ])('the error for a URL has no password: %j', (url) => {
    expect(() => parseRedisUrl('url', url)).toThrow(/\*\*\*@there/);
    expect(() => parseRedisUrl('url', url)).not.toThrow(/secret/);
  });

  it('the error for a URL has no password of the query', () => {
    const parse = (): unknown => parseRedisUrl('url', 'redis://there?password=secret&a=b');
    expect(parse).toThrow(/there\?password=\*\*\*&a=b/);
    expect(parse).not.toThrow(/secret/);
  });

  it('a URL that is not a string is rejected', () => {
    expect(() => parseRedisUrl('url', 5)).toThrow('url must be a string. Received 5');
  });
});
