import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, extname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { build as bundle, transform } from 'esbuild';
import { chromium } from 'playwright-core';
import { build as buildPage } from 'vite';
import { listen } from '../listen.ts';
import { finished } from '../run-program.ts';
import type { CheckResult, RuntimeFeatures } from './checks.ts';

/** Where a program of checks runs. */
export interface Runtime {
  readonly name: string;
  readonly features: RuntimeFeatures;
  /** Runs the checks of a workspace. */
  run(workspace: Workspace, features: RuntimeFeatures): Promise<CheckResult[]>;
}

/** Where packages of this folder have their commands. */
const bin = (name: string): string => join(import.meta.dirname, 'node_modules/.bin', name);

/** The longest that a runtime may take: past it, it hangs and is killed. */
const MOST_MS = 90_000;

/** A project of a user: the checks as JavaScript, and this package, as built, among its modules. */
export class Workspace {
  readonly path = mkdtempSync(join(tmpdir(), 'runtimes-'));

  static async create(): Promise<Workspace> {
    const workspace = new Workspace();
    mkdirSync(join(workspace.path, 'node_modules'));
    symlinkSync(join(import.meta.dirname, '../..'), join(workspace.path, 'node_modules/escapement'));
    workspace.write('package.json', '{ "type": "module", "dependencies": { "escapement": "*" } }');
    const checks = readFileSync(join(import.meta.dirname, 'checks.ts'), 'utf8');
    const { code } = await transform(checks, { loader: 'ts', target: 'es2022' });
    workspace.write('checks.js', code);
    return workspace;
  }

  /** Writes a file and returns its path. */
  write(name: string, content: string): string {
    const path = join(this.path, name);
    writeFileSync(path, content);
    return path;
  }

  remove(): void {
    rmSync(this.path, { recursive: true });
  }
}

const runAndPrint = (features: RuntimeFeatures): string =>
  `import { runChecks } from './checks.js';\nconsole.log(JSON.stringify(await runChecks(${JSON.stringify(features)})));\n`;

/** A runtime that runs a file and resolves packages as Node does. */
function command(name: string, ...args: string[]): Runtime {
  return {
    name,
    features: { asyncContext: true },
    async run(workspace, features) {
      const file = workspace.write(`${name}.js`, runAndPrint(features));
      const program = name === 'node' ? process.execPath : bin(name);
      const child = spawn(program, [...args, file], { cwd: workspace.path, timeout: MOST_MS });
      const { stdout, stderr, code } = await finished(child);
      if (code !== 0) throw new Error(`${name} exited with ${code}: ${stderr}`);
      return JSON.parse(stdout.toString()) as CheckResult[];
    },
  };
}

/** Cloudflare's, with its modules of Node's names or without. */
function workerd(features: RuntimeFeatures): Runtime {
  return {
    name: features.asyncContext ? 'workerd with nodejs_compat' : 'workerd',
    features,
    run: (workspace) => {
      const answer = `Response.json(await runChecks(${JSON.stringify(features)}))`;
      return withWorker(workspace, features, answer, async (url) => {
        const response = await fetch(url);
        return (await response.json()) as CheckResult[];
      });
    },
  };
}

/**
 * Sends requests that are pending at the same time to a worker of workerd: each sleeps for as many milliseconds as its path has, on a
 * timer of its own and with `escapement/timers`.
 *
 * @returns the paths that they answer with.
 */
export function sleepInRequests(
  workspace: Workspace,
  features: RuntimeFeatures,
  delaysMs: readonly number[],
): Promise<string[]> {
  const answer = `new Response(await sleepTwice(new URL(request.url).pathname))`;
  return withWorker(workspace, features, answer, (url) =>
    Promise.all(delaysMs.map(async (ms) => (await fetch(`${url}${ms}`)).text())),
  );
}

const SLEEP_TWICE = `import { SystemTimer } from 'escapement';
import { setTimeout } from 'escapement/timers/promises';
async function sleepTwice(path) {
  const delayMs = Number(path.slice(1));
  const timer = new SystemTimer();
  await Promise.all([timer.sleep(delayMs), setTimeout(delayMs), setTimeout(delayMs)]);
  await setTimeout(1);
  timer.close();
  return path;
}\n`;

/** Starts workerd with a worker that answers each request with an expression, for as long as `use` takes. */
async function withWorker<T>(
  workspace: Workspace,
  features: RuntimeFeatures,
  answer: string,
  use: (url: string) => Promise<T>,
): Promise<T> {
  await bundle({
    stdin: {
      contents: `import { runChecks } from './checks.js';\n${SLEEP_TWICE}
export default { async fetch(request) { return ${answer}; } };`,
      resolveDir: workspace.path,
    },
    bundle: true,
    format: 'esm',
    platform: 'neutral',
    conditions: ['workerd', 'worker'],
    outfile: join(workspace.path, 'worker.js'),
    logLevel: 'silent',
  });
  const config = workspace.write(
    'config.capnp',
    `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [ (name = "main", worker = (
    modules = [ (name = "worker", esModule = embed "worker.js") ],
    compatibilityDate = "2026-01-01",
    compatibilityFlags = [ ${features.asyncContext ? '"nodejs_compat"' : '"no_nodejs_compat_v2"'} ]
  )) ],
  sockets = [ (name = "http", address = "127.0.0.1:0", http = (), service = "main") ]
);\n`,
  );
  const server = spawn(bin('workerd'), ['serve', config, '--control-fd=1'], { timeout: MOST_MS });
  try {
    return await use(`http://127.0.0.1:${await portOf(server)}/`);
  } finally {
    server.kill();
    await once(server, 'close');
  }
}

/** The page's own thread, or a web worker of it. */
function browser(thread: 'main thread' | 'web worker'): Runtime {
  return {
    name: `Chromium, ${thread}`,
    features: { asyncContext: false },
    async run(workspace, features) {
      const checks = `import { runChecks } from './checks.js';\nconst run = () => runChecks(${JSON.stringify(features)});\n`;
      workspace.write('worker.js', `${checks}self.onmessage = async () => self.postMessage(await run());\n`);
      const inWorker = `globalThis.results = new Promise((resolve, reject) => {
  const worker = new Worker(new URL('./worker.js', import.meta.url), { type: 'module' });
  worker.onmessage = ({ data }) => resolve(data);
  worker.onerror = ({ message }) => reject(new Error(message));
  worker.postMessage('run');
});\n`;
      workspace.write(
        'page.js',
        thread === 'main thread' ? `${checks}globalThis.results = run();\n` : inWorker,
      );
      workspace.write('index.html', '<!doctype html><script type="module" src="./page.js"></script>\n');
      const outDir = join(workspace.path, 'dist');
      await buildPage({
        root: workspace.path,
        configFile: false,
        logLevel: 'error',
        build: { outDir },
        worker: { format: 'es' },
      });
      return resultsOf(await serveFolder(outDir));
    },
  };
}

/** All runtimes. Each is the real one. */
export const RUNTIMES: readonly Runtime[] = [
  command('node'),
  command('bun'),
  command('deno', 'run', '--quiet', '--node-modules-dir=manual', '--allow-read', '--allow-env'),
  workerd({ asyncContext: true }),
  workerd({ asyncContext: false }),
  browser('main thread'),
  browser('web worker'),
];

/** Chromium of the system: `CHROMIUM` names another one. */
function chromiumPath(): string {
  const { CHROMIUM } = process.env;
  const places = ['chromium', 'chromium-browser', 'google-chrome'].map((name) => `/usr/bin/${name}`);
  const path = CHROMIUM ?? places.find((place) => existsSync(place));
  if (path === undefined)
    throw new Error('no Chromium: install the package chromium, or set CHROMIUM to its path');
  return path;
}

async function resultsOf(url: string): Promise<CheckResult[]> {
  const opened = await chromium.launch({
    executablePath: chromiumPath(),
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-sync',
    ],
  });
  try {
    const page = await opened.newPage();
    const failures: string[] = [];
    page.on('pageerror', (error) => failures.push(error.message));
    await page.goto(url);
    const results = await page.evaluate('globalThis.results ?? null');
    if (results === null) throw new Error(`the page did not start: ${failures.join('; ')}`);
    return results as CheckResult[];
  } finally {
    await opened.close();
  }
}

const TYPES: Readonly<Record<string, string>> = { '.html': 'text/html', '.js': 'text/javascript' };

/** Serves the files of a folder for the length of the test. @returns where. */
async function serveFolder(folder: string): Promise<string> {
  const port = await listen(({ url = '/' }, response) => {
    const path = url === '/' ? join(folder, 'index.html') : join(folder, 'assets', basename(url));
    const type = TYPES[extname(path)] ?? 'application/octet-stream';
    if (existsSync(path)) response.writeHead(200, { 'content-type': type }).end(readFileSync(path));
    else response.writeHead(404).end();
  });
  return `http://127.0.0.1:${port}/`;
}

/** workerd reports its port as a line of JSON. */
async function portOf(server: ChildProcess): Promise<number> {
  if (server.stdout === null || server.stderr === null) throw new Error('workerd has no output');
  const errors = textOf(server.stderr);
  for await (const line of createInterface({ input: server.stdout })) {
    const message = JSON.parse(line) as { event: string; port?: number };
    if (message.event === 'listen' && message.port !== undefined) return message.port;
  }
  throw new Error(`workerd did not start: ${await errors}`);
}

async function textOf(stream: NodeJS.ReadableStream): Promise<string> {
  let text = '';
  for await (const chunk of stream) text += String(chunk);
  return text;
}
