import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { keyOfOutput, keyOfSource, outputOf } from '../../examples/controller/controller/keys.ts';
import { listKeys } from '../../examples/controller/controller/list-keys.ts';
import { Reconciler } from '../../examples/controller/controller/reconciler.ts';
import { isRendered, renderSettings } from '../../examples/controller/controller/settings.ts';
import { TreeWatcher } from '../../examples/controller/controller/tree-watcher.ts';

let root: string;
let source: string;
let output: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'controller-parts-'));
  source = join(root, 'source');
  output = join(root, 'output');
  await mkdir(source);
  await mkdir(output);
});
afterEach(async () => {
  await rm(root, { recursive: true });
});

describe('keys', () => {
  it('lead from a source to its output and back', () => {
    expect(outputOf('team/app.json')).toBe('team/app.conf');
    expect(keyOfOutput('team/app.conf')).toBe('team/app.json');
    expect(keyOfSource('team/app.json')).toBe('team/app.json');
    expect([keyOfSource('team/app.conf'), keyOfOutput('team/app.conf.tmp')]).toEqual([undefined, undefined]);
  });

  it('of a directory are those of what is there, and of the outputs of what was', async () => {
    await mkdir(join(source, 'team/deep'), { recursive: true });
    await writeFile(join(source, 'team/app.json'), '{}');
    await writeFile(join(source, 'team/notes.txt'), '');
    await mkdir(join(output, 'team/gone'), { recursive: true });
    await writeFile(join(output, 'team/old.conf'), '');
    await writeFile(join(output, 'team/app.conf'), '');

    const keys = await listKeys(source, output, 'team/');

    expect([...keys].sort()).toEqual(['team/app.json', 'team/deep/', 'team/gone/', 'team/old.json']);
    expect([...(await listKeys(source, output, '/'))]).toEqual(['team/']);
    expect([...(await listKeys(source, output, 'nowhere/'))]).toEqual([]);
  });

  it('are none when the source is gone as a whole: nothing is to be removed then', async () => {
    await writeFile(join(output, 'app.conf'), '');
    await rm(source, { recursive: true });

    await expect(listKeys(source, output, '/')).rejects.toThrow(`there is no directory ${source}`);
    await mkdir(source);
  });
});

describe('settings', () => {
  it('are rendered one a line, sorted', () => {
    const text = renderSettings(
      'a.json',
      '{ "server": { "port": 80, "host": "x" }, "tags": ["b", "a"], "on": true }',
    );

    expect(text.split('\n').slice(1)).toEqual([
      'on = true',
      'server.host = "x"',
      'server.port = 80',
      'tags = ["b","a"]',
      '',
    ]);
    expect(isRendered(text)).toBe(true);
    expect(isRendered('port = 80\n')).toBe(false);
  });

  it.each(['', '{ "port": ', '[1]', '"text"', 'null'])('that are not an object are refused: %j', (json) => {
    expect(() => renderSettings('a.json', json)).toThrow(SyntaxError);
  });
});

describe('the reconciler', () => {
  const rendered = renderSettings('team/app.json', '{"a":1}');

  async function put(path: string, text: string): Promise<void> {
    await mkdir(join(root, path, '..'), { recursive: true });
    await writeFile(join(root, path), text);
  }

  it('writes what is missing or out of date, and nothing else', async () => {
    const reconciler = new Reconciler(source, output);
    await put('source/team/app.json', '{"a":1}');

    expect(await reconciler.reconcile('team/app.json')).toBe('written');
    expect(await reconciler.reconcile('team/app.json')).toBe('unchanged');
    expect(await readFile(join(output, 'team/app.conf'), 'utf8')).toBe(rendered);
    await put('output/team/app.conf', `${rendered}b = 2\n`);
    expect(await reconciler.reconcile('team/app.json')).toBe('written');
    expect(await readFile(join(output, 'team/app.conf'), 'utf8')).toBe(rendered);
  });

  it('removes what has no source any more, and directories that are empty then', async () => {
    await put('output/team/deep/app.conf', rendered);
    await put('output/team/other.conf', rendered);

    expect(await new Reconciler(source, output).reconcile('team/deep/app.json')).toBe('removed');
    expect(await readdir(output, { recursive: true })).toEqual(['team', 'team/other.conf']);
    expect(await new Reconciler(source, output).reconcile('team/other.json')).toBe('removed');
    expect(await readdir(output)).toEqual([]);
  });

  it('neither overwrites nor removes what somebody else wrote', async () => {
    await put('output/app.conf', 'mine = true\n');
    expect(await new Reconciler(source, output).reconcile('app.json')).toBe('unchanged');
    await put('source/app.json', '{}');

    await expect(new Reconciler(source, output).reconcile('app.json')).rejects.toThrow('by somebody else');
    expect(await readFile(join(output, 'app.conf'), 'utf8')).toBe('mine = true\n');
  });

  it('fails at a syntax error and leaves the output', async () => {
    await put('output/team/app.conf', rendered);
    await put('source/team/app.json', '{"a":');

    await expect(new Reconciler(source, output).reconcile('team/app.json')).rejects.toThrow(SyntaxError);
    expect(await readFile(join(output, 'team/app.conf'), 'utf8')).toBe(rendered);
  });

  it('fails where a directory stands in the way, and leaves nothing beside it', async () => {
    await mkdir(join(output, 'app.conf'));
    await put('source/app.json', '{}');

    await expect(new Reconciler(source, output).reconcile('app.json')).rejects.toThrow(/EISDIR|EPERM/);
    expect(await readdir(output)).toEqual(['app.conf']);
  });

  it('fails where a file stands in the way of a directory', async () => {
    await put('output/team', 'somebody else');
    await put('source/team/app.json', '{}');

    await expect(new Reconciler(source, output).reconcile('team/app.json')).rejects.toThrow(/EEXIST|ENOTDIR/);
    expect(await readFile(join(output, 'team'), 'utf8')).toBe('somebody else');
  });
});

describe('the watcher of a tree', () => {
  /** Resolves with the paths of events, once one of them is `path`. */
  function heard(
    path: string,
    directory: string,
  ): { readonly watcher: TreeWatcher; readonly event: Promise<void> } {
    let hear: () => void;
    const event = new Promise<void>((resolve) => {
      hear = resolve;
    });
    const watcher = new TreeWatcher(source, (told) => {
      if (told === path) hear();
    });
    watcher.watch(directory);
    return { watcher, event };
  }

  it('tells of a file that was replaced, and of writes to the new one', async () => {
    await writeFile(join(source, 'a.json'), '1');
    await writeFile(join(root, 'new'), '2');
    await rename(join(root, 'new'), join(source, 'a.json'));
    const { watcher, event } = heard('a.json', '/');

    await writeFile(join(source, 'a.json'), '3');
    await event;
    watcher.close();
  });

  it('watches a directory of the same name anew', async () => {
    await mkdir(join(source, 'team'));
    const { watcher, event } = heard('team/a.json', 'team/');
    await rm(join(source, 'team'), { recursive: true });
    await mkdir(join(source, 'team'));

    watcher.watch('team/');
    await writeFile(join(source, 'team/a.json'), '1');
    await event;
    watcher.close();
  });

  it('does nothing where there is no directory, nor after it was closed', () => {
    const watcher = new TreeWatcher(source, () => undefined);
    watcher.watch('nowhere/');
    watcher.close();
    watcher.watch('/');
  });
});
