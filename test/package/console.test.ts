import { inspect } from 'node:util';
import { ManualClock, SystemTimer, WorkQueue } from 'escapement';
import { Client, Inspector, Scheduler, Server, Task } from 'escapement/tasks';
import { expect, it } from 'vitest';
import {
  binary,
  brokerOf1,
  closing,
  diskQueue,
  handled,
  leaseOf,
  printed,
  Produce,
  redis,
  redisOf,
  sum,
  timerOf3,
  unconnectedClient,
  watched,
} from './printed.ts';

/** What `console.log` prints, in one line. */
function print(object: unknown): string {
  return inspect(object, { breakLength: Infinity, compact: 10, depth: 5 });
}

/** What only a look into the implementation shows. */
const INTERNALS =
  /\[Function|\[class|\[Object\]|\[Array\]|Symbol\(|(?:Map|Set|Array|List)\(|[{,] _|undefined|#/;

it.each(printed())(
  'a console prints the name and the state of %s, and none of its internals',
  async (_, make, expected) => {
    const text = print(await make());
    expect(text).toEqual(typeof expected === 'string' ? expected : expect.stringMatching(expected));
    expect(text).not.toMatch(INTERNALS);
  },
);

it.each(printed())('the JSON of %s is short and not cyclic', async (_, make) => {
  expect(JSON.stringify(await make()).length).toBeLessThan(5_000);
});

it('the JSON of a pending operation has its public fields', () => {
  const json: unknown = JSON.parse(JSON.stringify(watched(new Produce(7))));
  const state = { pending: true, isCancelled: false, isCompleted: false };
  expect(json).toEqual({ delayMs: 1_500, offset: 7, ...state });
});

it.each([
  ['text', sum, { payload: '[1,2]', payloadEncoding: 'utf8', result: '3', resultEncoding: 'utf8' }],
  ['bytes', binary, { payload: '/9gA', payloadEncoding: 'base64', result: '3', resultEncoding: 'utf8' }],
])('the JSON of a TaskInfo has its payload if that is %s', async (_, task, expected) => {
  const { info } = await handled(task, 3);
  expect(JSON.parse(JSON.stringify(info))).toMatchObject({ id: 't1', retried: 0, ...expected });
});

it.each([
  ['SystemTimer', () => closing(new (class MyTimer extends SystemTimer {})())],
  ['WorkQueue', () => new (class MyQueue extends WorkQueue<string> {})()],
  ['Client', async () => new (class MyClient extends Client {})({ broker: await brokerOf1() })],
  ['Server', async () => new (class MyServer extends Server {})({ broker: await brokerOf1() })],
  ['ManualClock', () => new (class MyClock extends ManualClock {})()],
  ['Task', () => new (class MyTask extends Task {})('ping')],
])('a console prints a subclass of %s under its own name', async (_, make) => {
  expect(print(await make())).toMatch(/^My[A-Z][a-z]+ \{/);
});

it('a console prints the public fields of a subclass', () => {
  class Labelled extends SystemTimer {
    readonly label = 'x';
  }
  expect(print(closing(new Labelled()))).toMatch(/^Labelled \{ name: '[^']*', label: 'x', size: 0, /);
});

it('a console prints an anonymous subclass under the name of the class that it extends', () => {
  const [Anonymous] = [class extends ManualClock {}];
  expect(print(new Anonymous())).toMatch(/^ManualClock \{/);
});

it('a console prints only the name where the depth is used up', () => {
  const timer = timerOf3();
  expect(inspect(timer, { depth: -1 })).toBe('[SystemTimer]');
  expect(inspect({ a: { b: { timer } } }, { depth: 1, compact: 5 })).toBe('{ a: { b: [Object] } }');
  expect(inspect({ a: { timer } }, { depth: 1, compact: 5 })).toBe('{ a: { timer: [SystemTimer] } }');
});

it('a console prints with the requested colours', () => {
  expect(inspect(new ManualClock(), { colors: true })).toContain('nowMs: \u001b[33m0\u001b[39m');
});

it('a console shows that an object is closed', async () => {
  const timer = new SystemTimer({ name: 'http' });
  timer.close();
  expect(print(timer)).toBe("SystemTimer { name: 'http', size: 0, levels: 1, closed: true }");
  const queue = await diskQueue();
  const delivery = await queue.receive();
  delivery.ack();
  await queue.close();
  expect(print(queue)).toMatch(
    /^DiskQueue \{ .+, depth: 0, bytes: 0, durability: 'always', state: 'closed' \}$/,
  );
  expect(print(delivery)).toBe("Delivery { bytes: 5, state: 'settled' }");
  const lease = await leaseOf('web');
  lease.done();
  expect(print(lease)).toBe("Lease { item: 'web', state: 'done' }");
  const broker = await brokerOf1();
  const server = new Server({ broker });
  await server.shutdown();
  await broker.close();
  expect(print(broker)).toBe("EmbeddedBroker { state: 'closed' }");
  expect(print(server)).toContain("state: 'closed'");
});

it('a console prints the name of a proxy, of a mock and of an object whose getter throws', () => {
  class Broken extends ManualClock {
    override now(): number {
      throw new Error('broken');
    }
  }
  const proxy = new Proxy(new ManualClock(), {});
  const mock = Object.create(SystemTimer.prototype) as SystemTimer;
  expect([proxy, mock, new Broken()].map(print)).toEqual(['ManualClock {}', 'SystemTimer {}', 'Broken {}']);
  expect(() => print(SystemTimer.prototype)).not.toThrow();
});

it.each([
  'redis://:s3cret@localhost:1',
  'rediss://user:s3cret@localhost:1/2',
  'redis://user:p@s3cret@localhost:1',
  'redis-socket://user:s3cret@/no/such.sock',
  'redis-sentinel://:s3cret@localhost:1/0?master=mymaster',
  'redis-cluster://:s3cret@localhost:1',
])('a console never prints a password: %s', (url) => {
  const broker = redis(url, 's3cret2');
  const holders = [broker, new Client({ broker }), new Inspector({ broker }), new Server({ broker })];
  const texts = [...holders, new Scheduler({ broker })].map((holder) => inspect(holder, { depth: Infinity }));
  expect(texts[0]).toContain("url: '" + url.slice(0, url.indexOf('//')) + '//***@');
  expect(texts.join('\n')).not.toContain('s3cret');
});

it('a console never prints the password of a client that was passed in', () => {
  expect(print(redisOf(unconnectedClient('s3cret')))).toBe(
    "RedisBroker { address: 'localhost:1', state: 'connecting' }",
  );
});

it('what users are given has the name of its type', async () => {
  const { task, context, info } = await handled(sum);
  const given = [await leaseOf('web'), await (await diskQueue()).receive(), task, context, info];
  const names = given.map((object) => object.constructor.name);
  expect(names).toEqual(['Lease', 'Delivery', 'ReceivedTask', 'TaskContext', 'TaskInfo']);
});
