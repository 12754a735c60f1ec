import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  Controller,
  render,
  type ControllerOptions,
  type Result,
} from '../../examples/controller/controller.ts';
import { folderOfTest } from '../folder.ts';
import { spawnNode } from '../run-program.ts';
import { bundleExample, eventually, runExample } from './support.ts';

const CONTROLLER = bundleExample('controller');

const NEVER_MS = 3_600_000;

let root: string;
let results: [Result, string][];
let controller: Controller | undefined;
let running: Promise<void> | undefined;
beforeEach(() => {
  root = folderOfTest();
  results = [];
});
afterEach(async () => {
  await controller?.stop();
  await running;
});

async function put(path: string, text: string): Promise<void> {
  await mkdir(dirname(join(root, path)), { recursive: true });
  await writeFile(join(root, path), text);
}

async function start(changes: Partial<ControllerOptions> = {}): Promise<Controller> {
  await mkdir(join(root, 'source'), { recursive: true });
  controller = new Controller({
    source: join(root, 'source'),
    output: join(root, 'output'),
    ...{ workers: 4, maxRetries: 2, retryDelayMs: 1, resyncMs: NEVER_MS },
    report: (result, key) => results.push([result, key]),
    ...changes,
  });
  running = controller.run();
  return controller;
}

/** Resolves when a key has had a result since the last call. */
async function until(result: Result, key: string): Promise<void> {
  await eventually(() => expect(results).toContainEqual([result, key]));
  results = [];
}

/** Every file below the output, with what it holds. */
async function outputs(): Promise<Record<string, string>> {
  const paths = await readdir(join(root, 'output'), { recursive: true, withFileTypes: true });
  const files = paths.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  const texts = files.map(async (path) => [path.slice(root.length + 1), await readFile(path, 'utf8')]);
  return Object.fromEntries((await Promise.all(texts)) as [string, string][]);
}

it('settings are rendered sorted, one a line', () => {
  const json = '{ "server": { "port": 80, "host": "x" }, "tags": ["b", "a"], "on": true }';
  expect(render('a.json', json).split('\n')).toEqual([
    '# Rendered from a.json. Changes in this file are overwritten.',
    'on = true',
    'server.host = "x"',
    'server.port = 80',
    'tags = ["b","a"]',
    '',
  ]);
});

it.each(['', '{ "port": ', '[1]', '"text"', 'null'])(
  'settings that are not a JSON object are refused: %j',
  (json) => {
    expect(() => render('a.json', json)).toThrow(SyntaxError);
  },
);

it('the controller makes a tree of files like the source, and follows every change by events alone', async () => {
  await put('source/team/a.json', '{"a":1}');
  await put('source/notes.txt', 'none of its business');
  await put('output/team/old/gone.conf', render('team/old/gone.json', '{}'));
  await start();
  await until('written', 'team/a.json');
  await eventually(() => expect(existsSync(join(root, 'output/team/old'))).toBe(false)); // an empty directory goes with its last file

  await put('source/in/new/directories.json', '{}');
  await until('written', 'in/new/directories.json');
  await put('source/team/a.json', '{"a":2}');
  await until('written', 'team/a.json');
  await rename(join(root, 'source/team'), join(root, 'source/crew'));
  await until('written', 'crew/a.json');
  await eventually(async () => {
    expect(await outputs()).toEqual({
      'output/crew/a.conf': render('crew/a.json', '{"a":2}'),
      'output/in/new/directories.conf': render('in/new/directories.json', '{}'),
    });
  });
});

it('the controller never has a file with two workers, and ends with the last of a burst of changes', async () => {
  const names = ['a', 'b', 'c'].map((name) => `${name}.json`);
  await start({ maxRetries: 100 });
  for (let version = 1; version <= 200; version++)
    for (const name of names) await put(`source/${name}`, `{"version":${version}}`);
  await eventually(async () => {
    const expected = names.map((name) => render(name, '{"version":200}'));
    expect(Object.values(await outputs())).toEqual(expected);
  });

  // 600 writes are about 1,800 events of the file system.
  expect(results.length).toBeLessThan(900);
});

it('the controller gives up a file that goes on failing, and renders it when it is repaired', async () => {
  await put('output/a.conf', render('a.json', '{"a":1}'));
  await put('source/a.json', '{');
  await start();
  await until('gave up', 'a.json');
  expect(await outputs()).toEqual({ 'output/a.conf': render('a.json', '{"a":1}') });

  await put('source/a.json', '{}');
  await until('written', 'a.json');
});

it('the controller neither overwrites nor removes a file that it has not rendered', async () => {
  await put('output/mine.conf', 'port = 80\n');
  await put('output/a.conf', 'port = 80\n');
  await put('source/a.json', '{}');
  await start();
  await until('gave up', 'a.json');

  expect(Object.values(await outputs())).toEqual(['port = 80\n', 'port = 80\n']);
});

it('the controller fails where a directory is in the way, and leaves no temporary file', async () => {
  await mkdir(join(root, 'output/a.conf'), { recursive: true });
  await put('source/a.json', '{}');
  await start();
  await until('gave up', 'a.json');

  expect(await outputs()).toEqual({});
});

it('the controller finds by its resync what no event reported', async () => {
  await put('source/a.json', '{}');
  await start({ resyncMs: 50 });
  await until('written', 'a.json');
  await rm(join(root, 'output/a.conf'));

  await until('written', 'a.json');
});

it('the controller leaves a file that waits for its retry alone when everything is listed', async () => {
  await put('source/bad.json', '{');
  const started = await start({ retryDelayMs: NEVER_MS });
  await until('failed', 'bad.json');
  started.resync();
  await until('listed', '/');

  expect(await started.stop()).toEqual(['bad.json']);
  expect(results).toEqual([]);
});

it('the controller removes nothing when the source directory is missing as a whole', async () => {
  await put('output/a.conf', render('a.json', '{}'));
  await start({ source: join(root, 'not-mounted') });
  await until('gave up', '/');

  expect(Object.keys(await outputs())).toEqual(['output/a.conf']);
});

it.skipIf(process.platform === 'win32')(
  'the controller watches a directory until SIGTERM, and serves the metrics of its queue',
  async () => {
    await put('source/good.json', '{"port":80}');
    await put('source/bad.json', '{"port":');
    const args = ['--source', join(root, 'source'), '--output', join(root, 'output'), '--max-retries', '1'];
    let metrics: Promise<string> | undefined;
    let url = '';
    const example = spawnNode([CONTROLLER, ...args, '--port', '0']);
    const { code, stdout } = await runExample(example, (line) => {
      url ||= /metrics: (.*)$/.exec(line)?.[1] ?? '';
      if (!line.includes('gave up')) return;
      metrics = fetch(url).then((response) => response.text());
      void metrics.finally(() => example.kill('SIGTERM'));
    });

    expect(code).toBe(1);
    expect(stdout).toMatch(/stopped: [^]*not rendered: bad\.json: .*JSON/);
    expect(await metrics).toMatch(/workqueue_adds_total\{name="settings"\} [4-9]/);
    expect(await metrics).toMatch(/workqueue_retries_total\{name="settings"\} [1-9]/);
    expect(Object.keys(await outputs())).toEqual(['output/good.conf']);
  },
);
