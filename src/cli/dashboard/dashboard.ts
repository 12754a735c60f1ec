import { createHash, timingSafeEqual } from 'node:crypto';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { Option, type Command } from 'commander';
import type { DashboardRequest } from '../../dashboard/dashboard-options.ts';
import { resolveDashboardOptions } from '../../dashboard/dashboard-options.ts';
import { serveDashboard } from '../../dashboard/dashboard.ts';
import { BrokerSource } from '../../dashboard/tasks-source.ts';
import { CommandError } from '../command-error.ts';
import { text, wholeNumber } from '../options.ts';
import { connectBroker } from '../tasks/connect.ts';
import {
  addConnectionOptions,
  CONNECTION_NAMES,
  connectionOf,
  type Connection,
  type ConnectionOptions,
  type Environment,
} from '../tasks/connection.ts';
import { HttpTarget } from '../tasks/target/http-target.ts';
import { printError, type Terminal } from '../terminal/terminal.ts';
import { printable } from '../terminal/text.ts';
import { startDemo, type Shown } from './demo.ts';

const DEFAULT_PORT = 8_411;
const DEFAULT_HOST = '127.0.0.1';
const DEFAULT_USER = 'admin';

const HELP = `
It shows the tasks of Redis, of a process that serves the HTTP API
(-u http://…), or of the folder of an embedded broker; the options for that are
those of 'escapement tasks'. The password of Redis is in the URI or in
ESCAPEMENT_PASSWORD.

Without a password, every program that reaches the port has access: a --host
that other machines reach requires one. Other users can see the arguments of a
process: put it into ESCAPEMENT_DASHBOARD_PASSWORD.

  escapement dashboard --demo --open
  escapement dashboard -u redis://127.0.0.1:6379
  escapement dashboard --path /var/lib/shop/tasks --read-only`;

interface DashboardCommandOptions extends ConnectionOptions {
  readonly port: number;
  readonly host: string;
  readonly readOnly?: boolean;
  readonly user?: string;
  readonly open?: boolean;
  readonly demo?: boolean;
  readonly write?: boolean;
}

/** What the command needs of its process. */
interface DashboardSurroundings {
  readonly terminal: Terminal;
  readonly environment: Environment;
  /** Opens a URL in the user's browser. @param onError - called if that is not possible. */
  readonly openBrowser: (url: string, onError: () => void) => void;
}

/** Adds `escapement dashboard`. @param others - surroundings that a test replaces. */
export function addDashboard(
  program: Command,
  terminal: Terminal,
  others: Partial<DashboardSurroundings> = {},
): void {
  const surroundings = { terminal, environment: process.env, openBrowser, ...others };
  const command = program
    .command('dashboard')
    .description('show queues, tasks and timers in a browser')
    .addOption(
      new Option('--port <port>', 'port to listen on; 0 for any that is free')
        .argParser(wholeNumber(0, 65_535))
        .default(DEFAULT_PORT),
    )
    .addOption(new Option('--host <host>', 'address to listen on').argParser(text).default(DEFAULT_HOST))
    .option('--read-only', 'show, and change nothing')
    .addOption(
      new Option('--user <name>', `name to log in with (default: "${DEFAULT_USER}")`).argParser(text),
    )
    .option('--password <password>', 'password to log in with')
    .option('--open', 'open it in the browser')
    .option('--demo', 'show invented data; needs no Redis')
    .option('--write', 'take the folder of --path, so that its tasks can be changed')
    .addHelpText('after', HELP);
  addConnectionOptions(command, ['password', 'json']);
  command.action((options: DashboardCommandOptions) => run(options, surroundings));
}

async function run(options: DashboardCommandOptions, surroundings: DashboardSurroundings): Promise<void> {
  const { terminal, environment } = surroundings;
  const { port, host } = options;
  const authorize = authorizeOf(options, environment);
  requireSafe(options, authorize !== undefined);
  const shown = await open(options, surroundings);
  try {
    const isReadOnly = options.readOnly === true || shown.isReadOnly;
    const { source, parts, title } = shown;
    const settings = { ...parts, title, readOnly: isReadOnly, ...(authorize && { authorize }) };
    const board = serveDashboard(resolveDashboardOptions(settings, true), source);
    const server = createServer(board);
    try {
      await listen(server, port, host);
      const url = urlOf(host, (server.address() as AddressInfo).port);
      await terminal.out.print(
        `${url} shows ${printable(title)}${isReadOnly ? ', read-only' : ''} (ctrl-c ends it)`,
      );
      await terminal.out.flush();
      if (options.open === true) {
        surroundings.openBrowser(url, () => void printError(terminal, `cannot open a browser; open ${url}`));
      }
      await ended(terminal.signal);
    } finally {
      board.close();
      server.close();
      server.closeAllConnections();
    }
  } finally {
    await shown.close();
  }
}

async function open(options: DashboardCommandOptions, surroundings: DashboardSurroundings): Promise<Shown> {
  const { signal } = surroundings.terminal;
  signal.throwIfAborted();
  const isWritten = options.write === true;
  // The password of the command is not that of Redis.
  const given: ConnectionOptions = { ...options, password: undefined };
  if (options.demo !== true)
    return openTasks(connectionOf(given, surroundings.environment), isWritten, signal);
  const other = CONNECTION_NAMES.find((name) => given[name] !== undefined);
  if (other !== undefined) throw new CommandError(`--demo and --${other} cannot be used together`);
  return startDemo();
}

/** Connects to tasks in Redis, in a folder or in another process. @param isWritten - whether the folder may be changed. */
async function openTasks(connection: Connection, isWritten: boolean, signal: AbortSignal): Promise<Shown> {
  if (connection.kind === 'http') {
    const { url, headers } = connection;
    await new HttpTarget(url, headers, signal).queueInfos();
    // Later requests end after the server of the dashboard; Ctrl-C must not make errors of them.
    const source = new HttpTarget(url, headers);
    return { title: source.name, source, parts: {}, isReadOnly: false, close: () => source.close() };
  }
  const broker = await connectBroker(connection, signal, isWritten ? 'change' : 'read', () => undefined);
  const source = new BrokerSource(broker, connection.name);
  const isReadOnly = connection.kind === 'folder' && !isWritten;
  return { title: source.name, source, parts: {}, isReadOnly, close: () => broker.close() };
}

// Login.

type Authorize = (request: DashboardRequest) => true | { readonly challenge: string };

/** Returns the check of a request; undefined without a password. @throws CommandError - there is a user without one. */
function authorizeOf(
  { user, password }: DashboardCommandOptions,
  environment: Environment,
): Authorize | undefined {
  const name = user ?? environment['ESCAPEMENT_DASHBOARD_USER'];
  const secret = password ?? environment['ESCAPEMENT_DASHBOARD_PASSWORD'] ?? '';
  if (secret === '') {
    if (user === undefined && password === undefined) return undefined;
    throw new CommandError(
      'the dashboard needs a password that is not empty: --password or ESCAPEMENT_DASHBOARD_PASSWORD',
    );
  }
  const expected = digest(`${name === undefined || name === '' ? DEFAULT_USER : name}:${secret}`);
  const challenge = 'Basic realm="escapement", charset="UTF-8"';
  // Digests have the same length, so the comparison takes the same time whatever was sent.
  return (request) => timingSafeEqual(digest(credentialsOf(request)), expected) || { challenge };
}

function digest(credentials: string): Buffer {
  return createHash('sha256').update(credentials).digest();
}

/** Returns `user:password`; empty if the request has none. */
function credentialsOf({ headers }: IncomingMessage | Request): string {
  const header = headers instanceof Headers ? headers.get('authorization') : headers.authorization;
  const [, encoded = ''] = /^Basic +([A-Za-z0-9+/=]+)$/i.exec(header ?? '') ?? [];
  return Buffer.from(encoded, 'base64').toString();
}

/** @throws CommandError - others would reach the dashboard without a password, or an option has no meaning. */
function requireSafe({ host, write, path }: DashboardCommandOptions, hasLogin: boolean): void {
  if (write === true && path === undefined) throw new CommandError('--write is for --path');
  if (hasLogin || isLoopback(host)) return;
  throw new CommandError(
    `--host ${host}: other machines would reach the dashboard; it needs --password or ESCAPEMENT_DASHBOARD_PASSWORD`,
  );
}

function isLoopback(host: string): boolean {
  return /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/i.test(host);
}

// The server.

/** @throws CommandError - the port is in use. */
async function listen(server: Server, port: number, host: string): Promise<void> {
  try {
    await once(server.listen(port, host), 'listening');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    throw new CommandError(`port ${port} of ${host} is in use; choose another --port`);
  }
}

function urlOf(host: string, port: number): string {
  const name = host === '0.0.0.0' || host === '::' ? hostname() : host;
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}/`;
}

/** Resolves at Ctrl-C, and at a signal to end the process. */
async function ended(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const listening = new AbortController();
  const options = { signal: listening.signal };
  const signals = ['SIGTERM', 'SIGHUP'].map((name) => once(process, name, options));
  await Promise.race([once(signal, 'abort', options), ...signals]);
  listening.abort();
}

function openBrowser(url: string, onError: () => void): void {
  const [command, words] = OPENERS[process.platform] ?? ['xdg-open', []];
  const child = spawn(command, [...words, url], { detached: true, stdio: 'ignore' });
  child.once('error', onError).unref();
}

/** Commands that open a URL, on other systems than those of freedesktop.org. */
const OPENERS: Partial<Record<NodeJS.Platform, readonly [command: string, words: readonly string[]]>> = {
  darwin: ['open', []],
  win32: ['cmd', ['/c', 'start', '""']],
};
