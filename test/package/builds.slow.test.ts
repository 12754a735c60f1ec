import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { folderOfTest } from '../folder.ts';
import { runProgram } from '../run-program.ts';

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly sideEffects: boolean;
  readonly files: string[];
  readonly engines: { node: string };
  readonly exports: Record<string, unknown>;
  readonly dependencies?: Record<string, string>;
  readonly peerDependencies?: Record<string, string>;
  readonly peerDependenciesMeta?: Record<string, { optional: boolean }>;
}

const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as Manifest;

const EXPORTS = {
  escapement: [
    ...['AsyncDelayedOperation', 'BucketRateLimiter', 'DelayedOperation'],
    ...['DelayedOperationPurgatory', 'DelayingQueue', 'EscapementError'],
    ...['ItemExponentialFailureRateLimiter', 'ItemFastSlowRateLimiter', 'ManualClock'],
    ...['MaxOfRateLimiter', 'RateLimitingQueue', 'SystemTimer', 'TimerTask'],
    ...['WithJitterRateLimiter', 'WithMaxWaitRateLimiter', 'WorkQueue'],
    ...['defaultControllerRateLimiter', 'parallelizeUntil', 'systemClock', 'timeoutSignal'],
    ...['withTimeout'],
  ],
  'escapement/timers': [
    ...['clearImmediate', 'clearInterval', 'clearTimeout', 'promises', 'setImmediate'],
    ...['setInterval', 'setTimeout'],
  ],
  'escapement/timers/promises': ['scheduler', 'setImmediate', 'setInterval', 'setTimeout'],
  'escapement/diskqueue': ['DiskQueue', 'DummyBackendQueue', 'EscapementError', 'OverflowQueue'],
  'escapement/tasks': [
    ...['Client', 'EmbeddedBroker', 'EscapementError', 'Inspector', 'MAINTENANCE_JOBS'],
    ...['PeriodicTaskManager', 'RevokeTask', 'Scheduler', 'ServeMux', 'Server', 'SkipRetry'],
    ...['TASK_CHANGES', 'Task', 'TaskType', 'copyTasks', 'defaultRetryDelayMs', 'defineTask'],
    ...['parseCronSpec', 'taskQueueMetrics'],
  ],
  'escapement/tasks/http': ['tasksHandler'],
  'escapement/tasks/redis': ['RedisBroker'],
  'escapement/tasks/otel': ['openTelemetryTracing'],
  'escapement/metrics/prometheus': ['prometheusMetrics'],
  'escapement/metrics/otel': ['openTelemetryMetrics'],
  'escapement/dashboard': ['dashboard'],
  'escapement/testing': [
    'ManualClock',
    'checkBroker',
    'checkBrokerLog',
    'checkPurgatory',
    'checkQueue',
    'checkSegments',
    'checkTimer',
    'flakyBroker',
  ],
};

describe('the package', () => {
  it('package.json has no run-time dependency, no side effects, and Node 20.16 as the oldest version', () => {
    expect(manifest).toMatchObject({
      name: 'escapement',
      sideEffects: false,
      engines: { node: '^20.16.0 || >=22.3.0' },
    });
    expect(manifest.dependencies).toBeUndefined();
  });

  /** What a program of a format sees in each entry: its names, and those of functions and classes that have another name. */
  const seenBy = (type: 'module' | 'commonjs'): unknown => {
    const { stdout } = runProgram(
      `(async () => {
        const seen = {};
        for (const subpath of ${JSON.stringify(Object.keys(EXPORTS))}) {
          const m = ${type === 'module' ? 'await import(subpath)' : 'require(subpath)'};
          const wrong = Object.entries(m).filter(([name, value]) => {
            const chain = [];
            for (let it = value; typeof it === 'function' && it !== Function.prototype; it = Object.getPrototypeOf(it)) chain.push(it);
            const isWrong = (it) => !/^[A-Za-z]+$/.test(it.name) || (it.prototype && it.prototype.constructor?.name !== it.name);
            return (chain[0] && chain[0].name !== name) || (/^[A-Z]/.test(name) && chain.some(isWrong));
          });
          seen[subpath] = [Object.keys(m).sort(), wrong.map(([name]) => name)];
        }
        console.log(JSON.stringify(seen));
      })();`,
      { type },
    );
    return JSON.parse(stdout);
  };

  it.each(['module', 'commonjs'] as const)(
    'every entry exports its names, and every function and class has the name that it is exported by: %s',
    (type) => {
      const expected = Object.entries(EXPORTS).map(([subpath, names]) => [subpath, [names, []]]);
      expect(seenBy(type)).toEqual(Object.fromEntries(expected));
    },
  );

  it.each(['module', 'commonjs'] as const)(
    'objects of the package are printed under their own names: %s',
    (type) => {
      const names = ['escapement', 'escapement/diskqueue', 'escapement/tasks'];
      const load = names.map((name) =>
        type === 'module' ? `await import('${name}')` : `require('${name}')`,
      );
      const { lines, stderr } = runProgram(
        `(async () => {
        const [{ WorkQueue, SystemTimer }, { OverflowQueue, DummyBackendQueue }, { EmbeddedBroker, Client, Server, Task }] = [${load.join(', ')}];
        const queue = new WorkQueue();
        queue.add('web');
        for await (const lease of queue) { console.log(lease.constructor.name, lease); break; }
        const messages = new OverflowQueue({ memorySize: 1, backend: new DummyBackendQueue() });
        await messages.put(Buffer.from('hello'));
        const delivery = await messages.receive();
        console.log(delivery.constructor.name, delivery);
        console.log(new SystemTimer({ name: 'http' }));
        const broker = await EmbeddedBroker.open();
        const server = new Server({ broker });
        await server.start((task, context) => {
          console.log(task.constructor.name, task, context.constructor.name);
          void server.shutdown();
        });
        const info = await new Client({ broker }).enqueue(new Task('ping', 1));
        console.log(info.constructor.name);
      })();`,
        { type },
      );
      expect(stderr).toBe('');
      expect(lines).toEqual([
        "Lease Lease { item: 'web', state: 'held' }",
        "Delivery Delivery { bytes: 5, state: 'in flight' }",
        "SystemTimer { name: 'http', size: 0, levels: 1, closed: false }",
        'TaskInfo',
        "ReceivedTask ReceivedTask { type: 'ping', payload: '1' } TaskContext",
      ]);
    },
  );

  it('an uncaught error is printed under its own name', () => {
    const { stderr } = runProgram(`
      import { DelayedOperationPurgatory } from 'escapement';
      const purgatory = new DelayedOperationPurgatory('closed');
      purgatory.close();
      await purgatory.wait(['key'], () => undefined, { timeoutMs: 1 });`);
    expect(stderr).toMatch(/^EscapementError(: | \[ERR_PURGATORY_CLOSED\]: )/m);
  });

  it('the package loads nothing but itself, and a peer dependency only with its adapter', () => {
    const subpaths = Object.keys(EXPORTS).filter((subpath) => !/\/(metrics\/|otel$|redis$)/.test(subpath));
    const { stdout } = runProgram(
      `for (const subpath of ${JSON.stringify(subpaths)}) require(subpath);
       console.log(JSON.stringify(Object.keys(require.cache).filter((path) => path.includes('node_modules'))))`,
      { type: 'commonjs' },
    );
    expect(JSON.parse(stdout)).toEqual([]);
  });

  it('the CommonJS build has no import(), which jest rejects', () => {
    const folder = new URL('../../dist/', import.meta.url);
    const files = readdirSync(folder).filter((name) => name.endsWith('.cjs'));
    expect(files).toContain('testing.cjs');
    expect(files.filter((name) => /\bimport\(/.test(readFileSync(new URL(name, folder), 'utf8')))).toEqual(
      [],
    );
  });

  it.each(['js', 'cjs'])(
    'Next.js (Turbopack) finds no `new Worker` of a file that is not in its bundle: %s',
    (format) => {
      const file = new URL(`../../dist/tasks/redis.${format}`, import.meta.url);
      expect(readFileSync(file, 'utf8')).not.toMatch(/new (\w+\.)?Worker\(/);
    },
  );

  // Node 25 and later refuse fdatasync(2) to a process with --permission.
  it.skipIf(Number.parseInt(process.versions.node) > 24)(
    'a process that may only access the folder of a broker or a disk queue opens it',
    () => {
      const folder = folderOfTest();
      const isStable = process.allowedNodeEnvironmentFlags.has('--permission');
      const root = fileURLToPath(new URL('../../', import.meta.url));
      const flags = [
        isStable ? '--permission' : '--experimental-permission',
        ...[root, folder].map((path) => `--allow-fs-read=${path}`),
        `--allow-fs-write=${folder}`,
      ];
      const { stdout } = runProgram(
        `const { EmbeddedBroker } = require('escapement/tasks');
         const { DiskQueue } = require('escapement/diskqueue');
         const dataPath = ${JSON.stringify(folder)};
         (async () => {
           await (await EmbeddedBroker.open({ dataPath })).close();
           await (await DiskQueue.open({ name: 'queue', dataPath })).close();
         })().then(() => console.log('opened'), console.log);`,
        { type: 'commonjs', flags },
      );
      expect(stdout).toBe('opened\n');
    },
  );

  it('the package loads the disk queue only with its subpath', () => {
    const { lines } = runProgram(
      `const { readFileSync } = require('node:fs');
       const hasDiskQueue = (path) => readFileSync(path, 'utf8').includes('DiskQueueCorruption');
       const others = ${JSON.stringify(Object.keys(EXPORTS).filter((subpath) => subpath !== 'escapement/diskqueue'))};
       for (const subpaths of [others, ['escapement/diskqueue']]) {
         subpaths.forEach((subpath) => require(subpath));
         console.log(Object.keys(require.cache).some(hasDiskQueue));
       }`,
      { type: 'commonjs' },
    );
    expect(lines).toEqual(['false', 'true']);
  });

  it('the package does not bundle its peer dependencies, and all of them are optional', () => {
    const peers = Object.keys(manifest.peerDependencies ?? {});
    expect(peers).toEqual(['@opentelemetry/api', 'ioredis', 'prom-client']);
    expect(Object.entries(manifest.peerDependenciesMeta ?? {})).toEqual(
      peers.map((peer) => [peer, { optional: true }]),
    );
    const { stdout } = runProgram(
      `require('escapement/metrics/prometheus'); require('escapement/metrics/otel');
       require('escapement/tasks/redis');
       const loaded = Object.keys(require.cache).map((path) => path.replaceAll('\\\\', '/'));
       console.log(JSON.stringify(${JSON.stringify(peers)}.filter(
         (peer) => loaded.some((path) => path.includes('/node_modules/' + peer + '/')))))`,
      { type: 'commonjs' },
    );
    expect(JSON.parse(stdout)).toEqual(peers);
  });

  it.each([
    ['module', `import { checkSegments } from 'escapement/testing';`],
    ['commonjs', `const { checkSegments } = require('escapement/testing');`],
  ] as const)('checkSegments loads what it needs when it is called: %s', (type, loads) => {
    const source = `${loads} checkSegments('no such folder').catch((error) => console.log(error.code))`;
    expect(runProgram(source, { type }).lines).toEqual(['ENOENT']);
  });

  it('the package has one copy of each class per module format', () => {
    const source = `
      import { ManualClock } from 'escapement';
      import { ManualClock as Same } from 'escapement/testing';
      console.log(ManualClock === Same)`;
    expect(runProgram(source).stdout.trim()).toBe('true');
    const required = `console.log(require('escapement').ManualClock === require('escapement/testing').ManualClock)`;
    expect(runProgram(required, { type: 'commonjs' }).stdout.trim()).toBe('true');
  });

  it('the package works when both builds are loaded: errors, tasks and the checker cross over', () => {
    const { lines, stderr } = runProgram(`
      import { createRequire } from 'node:module';
      import { SystemTimer, TimerTask, EscapementError, ManualClock } from 'escapement';
      import { checkTimer } from 'escapement/testing';
      const cjs = createRequire(process.cwd() + '/x.js')('escapement');
      class Mine extends TimerTask { run() { console.log('ran', this instanceof cjs.TimerTask); } }
      const clock = new ManualClock();
      const theirs = new cjs.SystemTimer({ clock });
      const task = new Mine(10);
      theirs.add(task);
      const ours = new SystemTimer({ clock });
      ours.add(new (class extends cjs.TimerTask { run() { console.log('ran theirs'); } })(10));
      checkTimer(theirs);
      checkTimer(ours);
      const moved = new Mine(20);
      ours.add(moved);
      theirs.add(moved);
      console.log(ours.size, theirs.size, moved.cancel(), theirs.size);
      clock.advance(10);
      theirs.close();
      try { theirs.add(task); } catch (error) { console.log(error instanceof EscapementError, error.code); }
    `);
    expect(stderr).toBe('');
    expect(lines).toEqual(['1 2 true 1', 'ran false', 'ran theirs', 'true ERR_TIMER_CLOSED']);
  });

  it('the package works when both builds are loaded: operations and the checker cross over', () => {
    const { lines, stderr } = runProgram(`
      import { createRequire } from 'node:module';
      import { DelayedOperation, DelayedOperationPurgatory } from 'escapement';
      import { checkPurgatory } from 'escapement/testing';
      const cjs = createRequire(process.cwd() + '/x.js')('escapement');
      const define = (Base) => class extends Base {
        holds = false;
        constructor() { super(60_000); }
        tryComplete() { return this.holds && this.forceComplete(); }
        onComplete(reason) { console.log(reason); }
        onExpiration() {}
      };
      for (const [Purgatory, Base] of [
        [DelayedOperationPurgatory, cjs.DelayedOperation],
        [cjs.DelayedOperationPurgatory, DelayedOperation],
      ]) {
        const purgatory = new Purgatory('crossing');
        const operation = new (define(Base))();
        purgatory.tryCompleteElseWatch(operation, ['a', 'b']);
        checkPurgatory(purgatory);
        operation.holds = true;
        console.log(purgatory.checkAndComplete('b'), purgatory.watched, purgatory.numDelayed);
        purgatory.close();
      }
    `);
    expect(stderr).toBe('');
    expect(lines).toEqual(['tried', '1 0 0', 'tried', '1 0 0']);
  });

  it('the package works when both builds are loaded: they share the metrics of a registry and of a meter', () => {
    const { lines, stderr } = runProgram(`
      import { createRequire } from 'node:module';
      import { Registry } from 'prom-client';
      import { MeterProvider } from '@opentelemetry/sdk-metrics';
      import { PrometheusExporter, PrometheusSerializer } from '@opentelemetry/exporter-prometheus';
      import { prometheusMetrics } from 'escapement/metrics/prometheus';
      import { openTelemetryMetrics } from 'escapement/metrics/otel';
      const require = createRequire(process.cwd() + '/x.js');
      const registry = new Registry();
      const reader = new PrometheusExporter({ preventServerStart: true });
      const meter = new MeterProvider({ readers: [reader] }).getMeter('test');
      for (const metrics of [
        prometheusMetrics({ registry }),
        require('escapement/metrics/prometheus').prometheusMetrics({ registry }),
        openTelemetryMetrics({ meter }),
        require('escapement/metrics/otel').openTelemetryMetrics({ meter }),
      ]) metrics.observableGauge('depth', 'Depth.', () => 2, { name: 'a' });
      console.log((await registry.metrics()).trim().split('\\n').at(-1));
      const { resourceMetrics } = await reader.collect();
      console.log(new PrometheusSerializer(undefined, false, undefined, true, true).serialize(resourceMetrics).trim().split('\\n').at(-1));
    `);
    expect(stderr).toBe('');
    expect(lines).toEqual(['depth{name="a"} 4', 'depth{name="a"} 4']);
  });
});
