import { EventEmitter, once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { afterEach, beforeEach, describe, expect, vi } from 'vitest';
import { tasksHandler, type RedisInfo } from 'escapement/tasks/http';
import { settled } from '../../workqueue/support/outcome.ts';
import { raise, unreadable } from '../support/bench.ts';
import { serve, serveTasks, serveReporting, test } from './serve.ts';

const secret = new Error('secret');

function withCode(code: string): TypeError {
  return Object.assign(new TypeError('no'), { code });
}

function throwing(name: string): object {
  return Object.defineProperty<object>({}, name, { get: raise(secret) });
}

const calledBackTwice = {
  then: (callBack: (value: unknown) => unknown): unknown => [callBack({}), callBack(true)],
};

const unhandled: unknown[] = [];
const keep = (reason: unknown): void => void unhandled.push(reason);

beforeEach(() => {
  unhandled.length = 0;
  process.on('unhandledRejection', keep);
});
afterEach(async () => {
  await settled();
  process.off('unhandledRejection', keep);
  expect(unhandled).toEqual([]);
});

describe('authorize', () => {
  test.each([
    ['a character that is not in Latin-1', { challenge: 'Basic realm="日本"' }],
    ['a line break', { challenge: 'Basic\r\nset-cookie: a=b' }],
    ['a NUL', { challenge: 'Basic\0' }],
    ['a challenge that is not a string', { challenge: 5 }],
    ['an object without a challenge', {}],
    ['a number', 1],
    ['a string', 'yes'],
    ['null', null],
    ['undefined', undefined],
    ['a challenge that cannot be read', throwing('challenge')],
    ['an object that cannot be read', unreadable()],
    ['a then that cannot be read', throwing('then')],
    ['a promise of a wrong challenge', Promise.resolve({ challenge: 'ä€' })],
    ['a thenable that calls back twice', calledBackTwice],
  ])('a response is a server error if authorize returns %s', async (_, verdict) => {
    const { send, reported } = await serveReporting({ authorize: () => verdict as never });
    const { status, text, headers } = await send('/api/queues');
    expect({ status, text }).toEqual({ status: 500, text: 'internal error\n' });
    expect(headers['set-cookie']).toBeUndefined();
    expect(reported).toHaveLength(1);
  });

  test.each([
    ['an error that means something here', withCode('ERR_INVALID_ARG_TYPE')],
    ['an error whose code cannot be read', throwing('code')],
    ['something that cannot be read', unreadable()],
    ['undefined', undefined],
    ['an object without a prototype', Object.create(null)],
  ])('a response is a server error if authorize throws %s', async (_, error) => {
    const { send, reported } = await serveReporting({ authorize: raise(error) });
    expect(await send('/api/queues')).toMatchObject({ status: 500, text: 'internal error\n' });
    expect(reported).toHaveLength(1);
    expect(Object.is(reported[0], error)).toBe(true);
  });

  test('authorize may settle after the client has left, or never', async ({ broker }) => {
    const reported = vi.fn();
    const asked = new EventEmitter();
    const authorize = ({ url }: IncomingMessage): boolean | Promise<boolean> =>
      url === '/' ||
      new Promise((_, reject) => {
        asked.emit('asked', reject);
      });
    const send = await serve(tasksHandler({ broker, authorize, onError: reported }));
    const { port } = await send('/');
    for (const isRejected of [false, true]) {
      const asking = once(asked, 'asked') as Promise<[(error: unknown) => void]>;
      const request = get({ host: '127.0.0.1', port, path: '/api/queues', agent: false });
      request.on('error', () => undefined);
      const [reject] = await asking;
      const closed = new Promise((resolve) => request.once('close', resolve));
      request.destroy();
      await closed;
      if (isRejected) reject(secret);
      await settled();
    }
    expect(reported.mock.calls.map(([error]) => error as unknown)).toEqual([secret]);
  });
});

test.each([
  ['a number', 5],
  ['undefined', undefined],
  ['bytes', Buffer.from('a')],
  ['an object that cannot be read', unreadable()],
  ['a promise', Promise.resolve('text')],
])('a formatter that returns %s is reported, and the response has everything else', async (_, shown) => {
  const { add, send, reported } = await serveReporting({ formatPayload: () => shown as never });
  await add('a');
  const json = { id: 'a', payload: 'cannot be shown' };
  expect(await send('/api/queues/default/tasks/a')).toMatchObject({ status: 200, json });
  expect(reported).toHaveLength(1);
});

test.each<[string, () => never]>([
  ['throws', raise(unreadable())],
  ['rejects', () => Promise.reject(secret) as never],
])('a response has everything else if a formatter %s', async (_, format) => {
  const { add, broker, lease, send, reported } = await serveReporting({ formatResult: format });
  await add('a', { retentionMs: 1_000 });
  const task = await lease();
  await broker.writeResult(task, Uint8Array.of(1));
  await broker.complete(task);
  expect(await send('/api/queues/default/tasks/a')).toMatchObject({ json: { result: 'cannot be shown' } });
  expect(reported).toHaveLength(1);
});

describe('redisInfo', () => {
  const fine: RedisInfo = { address: 'a:1', info: { a: 'b' }, raw_info: 'a:b', cluster: false };

  test.each([
    ['undefined', undefined],
    ['null', null],
    ['a function', () => fine],
    ['an empty object', {}],
    ['an address that is not a string', { ...fine, address: 1 }],
    ['info that is not an object', { ...fine, info: 'a:b' }],
    ['info whose values are not strings', { ...fine, info: { a: 1n } }],
    ['raw_info that is not a string', { ...fine, raw_info: undefined }],
    ['cluster that is not a boolean', { ...fine, cluster: 'no' }],
    ['what cannot be read', unreadable()],
    ['what cannot become JSON', { ...fine, queue_locations: 5n }],
    ['locations whose toJSON throws', { ...fine, queue_locations: [{ toJSON: raise(secret) }] }],
  ])('a response is a server error if redisInfo returns %s', async (_, info) => {
    const { send, reported } = await serveReporting({ redisInfo: () => info as never });
    expect(await send('/api/redis_info')).toMatchObject({ status: 500, text: 'internal error\n' });
    expect(reported).toHaveLength(1);
  });

  test('a response is a server error if redisInfo throws, whatever the code of the error', async () => {
    const error = withCode('ERR_INVALID_ARG_VALUE');
    const { send, reported } = await serveReporting({ redisInfo: raise(error) });
    expect(await send('/api/redis_info')).toMatchObject({ status: 500 });
    expect(reported).toEqual([error]);
  });
});

test.each<[string, () => unknown]>([
  ['throws', raise(secret)],
  ['throws what cannot be read', raise(unreadable())],
  ['throws an object without a prototype', raise(Object.create(null))],
  ['rejects', () => Promise.reject(secret)],
  ['returns what cannot be read', unreadable],
  ['returns a then that throws', () => throwing('then')],
])('an onError that %s causes a warning of the process', async (_, onError) => {
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  const { send } = await serveTasks({ authorize: raise(secret), onError });
  expect(await send('/api/queues')).toMatchObject({ status: 500, text: 'internal error\n' });
  await settled();
  expect(warned).toHaveBeenCalledTimes(1);
  warned.mockRestore();
});

test('without onError any thrown value causes a warning that can be printed', async () => {
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  const stackless = Object.defineProperty(new Error('a'), 'stack', { get: raise(secret) });
  for (const error of [secret, stackless, unreadable(), Symbol('a'), Object.create(null)]) {
    const { send } = await serveTasks({ authorize: raise(error) });
    expect(await send('/api/queues')).toMatchObject({ status: 500 });
  }
  const unprintable = 'an error that cannot be shown';
  expect(warned.mock.calls).toEqual([
    ...[[secret], [unprintable], [unprintable], ['Symbol(a)'], [unprintable]],
  ]);
  warned.mockRestore();
});

test('a response that refuses its headers ends the connection, and nothing else', async ({ broker }) => {
  const reported: unknown[] = [];
  const handler = tasksHandler({ broker, onError: (error) => void reported.push(error) });
  const send = await serve((request, response) => {
    response.writeHead = raise(secret);
    handler(request, response);
  });
  await expect(send('/api/queues')).rejects.toMatchObject({ code: 'ECONNRESET' });
  expect(reported).toEqual([secret, secret]);
});
