import { Option, type Command } from 'commander';
import { withoutCredentials } from '../../core/errors.ts';
import {
  REDIS_SCHEMES,
  splitRedisUrl,
  type RedisUrlOptions,
} from '../../tasks/broker/redis/connection-options.ts';
import { credentialsOf, isHttpUrl } from '../../tasks/http/http-requests.ts';
import { CommandError } from '../command-error.ts';
import { addOption, text, wholeNumber, withoutSeparator } from '../options.ts';

export const CONNECTION_HELP = `
Where the tasks are:
  redis://[user:password@]host:port[/db]   Redis; rediss:// for TLS. host:port
                                           alone means the same
  redis-sentinel://…                       Redis, by its sentinels
  redis-cluster://a,b                      a Redis cluster, by some of its nodes
  http://host:port/path                    the HTTP API of a process
                                           (tasksHandler), where it is mounted
  --path FOLDER                            the folder of an embedded broker that
                                           no process has open

Commands that inspect a folder change nothing in it; others open it as its
process would. The URI is the first of --uri, ESCAPEMENT_URI, REDIS_URL and
redis://127.0.0.1:6379. The password is the first of --password, the one in the
URI, and ESCAPEMENT_PASSWORD; the token the first of --token and
ESCAPEMENT_TOKEN. Other users can see the arguments of a process: keep secrets
in the environment. These options, and --json, may stand before or after the
words of a command.

--json prints one JSON document; see docs/tasks-command.md.

Exit codes: 0 done; 1 some of several not done, or there is nothing to cancel; 2
wrong usage, or not done; 130 interrupted.`;

export interface ConnectionOptions {
  readonly path?: string;
  readonly uri?: string;
  readonly db?: number;
  readonly username?: string;
  readonly password?: string | undefined;
  readonly cluster?: boolean;
  readonly cluster_addrs?: string;
  readonly tls?: boolean;
  readonly tls_server?: string;
  readonly insecure?: boolean;
  readonly token?: string;
  readonly http_header?: readonly string[];
}

type Flag = readonly [flags: string, help: string, parse?: (word: string, before: unknown) => unknown];

const FLAGS: Readonly<Record<keyof ConnectionOptions, Flag>> = {
  uri: ['-u, --uri <uri>', 'where the tasks are'],
  path: [
    '--path <folder>',
    'the folder of an embedded broker (dataPath)',
    (word) => withoutSeparator(text(word)),
  ],
  db: ['-n, --db <n>', 'database of Redis', wholeNumber(0)],
  username: ['-U, --username <name>', 'user name'],
  password: ['-p, --password <password>', 'password of the user'],
  cluster: ['--cluster', 'the URI is of a node of a Redis cluster'],
  cluster_addrs: ['--cluster_addrs <addrs>', 'nodes of a Redis cluster: host:port,host:port'],
  tls: ['--tls', 'connect to Redis by TLS'],
  tls_server: ['--tls_server <name>', 'host name that the certificate must have'],
  insecure: ['--insecure', 'accept any certificate'],
  token: ['--token <token>', 'for the HTTP API: sent as Authorization: Bearer'],
  http_header: [
    '--http_header <header>',
    "for the HTTP API: 'Name: value'; may be repeated",
    (line, before) => [...((before as readonly string[] | undefined) ?? []), line],
  ],
};

type Name = keyof ConnectionOptions;

export const CONNECTION_NAMES = Object.keys(FLAGS) as readonly Name[];

const HEADING = 'Connection (see: escapement tasks --help):';

/**
 * Adds the connection options. `escapement tasks` has them and each of its commands, so they may stand anywhere.
 *
 * @param without - options that mean something else in the command, or nothing.
 */
export function addConnectionOptions(command: Command, without: readonly (Name | 'json')[] = []): void {
  if (!without.includes('json')) command.option('--json', 'print JSON');
  for (const name of CONNECTION_NAMES.filter((one) => !without.includes(one))) {
    const [flags, help, parse] = FLAGS[name];
    const option = new Option(flags, help).helpGroup(HEADING);
    if (parse !== undefined) option.argParser(parse);
    addOption(command, option, ...(name === 'uri' ? ['--url <uri>'] : []));
  }
}

const FOR_REDIS = ['db', 'cluster', 'cluster_addrs', 'tls', 'tls_server', 'insecure'] as const;
const FOR_HTTP = ['token', 'http_header'] as const;

export interface ToRedis {
  readonly kind: 'redis';
  /** Hosts or path, for messages: without the password. */
  readonly name: string;
  readonly options: RedisUrlOptions;
}

interface ToHttp {
  readonly kind: 'http';
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
}

/** The folder of an embedded broker. */
interface ToFolder {
  readonly kind: 'folder';
  /** Its path. */
  readonly name: string;
}

export type Connection = ToRedis | ToHttp | ToFolder;
export type Environment = Readonly<Record<string, string | undefined>>;

const DEFAULT_URI = 'redis://127.0.0.1:6379';
const SCHEME = /^([a-z][a-z0-9+.-]*):\/\//i;

/**
 * Returns where the tasks are: by the options, then the URI, then the environment.
 *
 * @throws CommandError - the options, the URI or the environment are invalid.
 */
export function connectionOf(options: ConnectionOptions, environment: Environment): Connection {
  if (options.path !== undefined) return folderConnection(options.path, options);
  const uri = uriOf(options, environment);
  const scheme = SCHEME.exec(uri)?.[1]?.toLowerCase() ?? '';
  if (scheme === 'http' || scheme === 'https') return httpConnection(uri, options, environment);
  if (REDIS_SCHEMES.includes(scheme)) return redisConnection(uri, options, environment);
  throw new CommandError(
    `--uri: '${scheme}' is not a known scheme. Known schemes: ${REDIS_SCHEMES.join(', ')}, http, https`,
  );
}

/** `host:port` is Redis, as in asynq. */
function uriOf({ cluster, cluster_addrs: addrs, uri }: ConnectionOptions, environment: Environment): string {
  const given = firstOf(addrs, uri, environment['ESCAPEMENT_URI'], environment['REDIS_URL'], DEFAULT_URI);
  const whole = SCHEME.test(given) ? given : `redis://${given}`;
  const isCluster = cluster === true || addrs !== undefined;
  return isCluster ? whole.replace(/^redis(s?):/i, 'redis$1-cluster:') : whole;
}

/** @throws CommandError - there is an option of another connection. */
export function folderConnection(path: string, options: ConnectionOptions): ToFolder {
  const other = CONNECTION_NAMES.find((name) => name !== 'path' && options[name] !== undefined);
  if (other !== undefined) throw new CommandError(`--path and --${other} cannot be used together`);
  return { kind: 'folder', name: path };
}

function httpConnection(uri: string, options: ConnectionOptions, environment: Environment): ToHttp {
  const redisOnly = FOR_REDIS.find((name) => options[name] !== undefined);
  if (redisOnly !== undefined)
    throw new CommandError(`--${redisOnly} is for Redis, and ${withoutSecrets(uri)} is not`);
  if (!isHttpUrl(uri)) throw notUri(uri);
  const url = new URL(uri);
  const { username, password } = options;
  if (username !== undefined) url.username = encodeURIComponent(username);
  if (url.username === '' && password !== undefined)
    throw new CommandError('--password over HTTP needs --username');
  const otherwise = url.password === '' ? environment['ESCAPEMENT_PASSWORD'] : undefined;
  const given = firstOf(password, otherwise);
  if (given !== '') url.password = encodeURIComponent(given);
  const token = firstOf(options.token, environment['ESCAPEMENT_TOKEN']);
  if (!/^[\x21-\x7e]*$/.test(token)) throw new CommandError('--token must be visible ASCII');
  const headers = {
    ...(url.username !== '' && credentialsOf(url)),
    ...(token !== '' && { authorization: `Bearer ${token}` }),
    ...Object.fromEntries((options.http_header ?? []).map(headerOf)),
  };
  return { kind: 'http', url, headers };
}

function headerOf(line: string): [name: string, value: string] {
  const [, name, value] = /^([!#$%&'*+.^_`|~0-9a-z-]+):[ \t]*([\t\x20-\x7e]*)$/i.exec(line) ?? [];
  if (name === undefined || value === undefined)
    throw new CommandError(`--http_header must be 'Name: value'`);
  return [name.toLowerCase(), value];
}

function redisConnection(uri: string, options: ConnectionOptions, environment: Environment): ToRedis {
  if (FOR_HTTP.some((name) => options[name] !== undefined)) {
    throw new CommandError(
      `--token and --http_header are for the HTTP API, and ${withoutSecrets(uri)} is not`,
    );
  }
  const { username, password, db, tls_server: servername, insecure } = options;
  const parts = splitRedisUrl(uri);
  // Another `@` is part of a password that was not encoded, and may be taken for another part of the URI.
  const countAt = uri.split('@').length - 1;
  if (parts === undefined || countAt !== (parts.userInfo === undefined ? 0 : 1)) throw notUri(uri);
  const { userInfo: login = '', hosts, path } = parts;
  const scheme = parts.scheme.toLowerCase();
  const isSocket = scheme === 'redis-socket';
  if (hosts === '' && (!isSocket || path === '')) throw notUri(uri);
  const query = parts.query === '' ? '' : `?${parts.query}`;
  // The password in a URL of sentinels is theirs, not that of the servers.
  const hasPassword = login.includes(':') && !scheme.endsWith('-sentinel');
  const otherwise = hasPassword ? undefined : environment['ESCAPEMENT_PASSWORD'];
  const isTls =
    scheme.startsWith('rediss') || [options.tls, insecure, servername].some((one) => one !== undefined);
  const secure = isTls ? scheme.replace(/^rediss?/, 'rediss') : scheme;
  const dbPath = db === undefined ? `${path}${query}` : isSocket ? `${path}?db=${db}` : `/${db}${query}`;
  const given = firstOf(password, otherwise);
  const tls = {
    ...(servername !== undefined && { servername }),
    ...(insecure === true && { rejectUnauthorized: false }),
  };
  return {
    kind: 'redis',
    name: isSocket ? path : hosts,
    options: {
      url: `${secure}://${login === '' ? '' : `${login}@`}${hosts}${dbPath}`,
      ...(username !== undefined && { username }),
      ...(given !== '' && { password: given }),
      ...(isTls && { tls }),
    },
  };
}

/** Returns the first text that is not empty; empty if there is none. */
function firstOf(...texts: readonly (string | undefined)[]): string {
  return texts.find((one) => one !== undefined && one !== '') ?? '';
}

function notUri(uri: string): CommandError {
  return new CommandError(`--uri: ${withoutSecrets(uri)} is not a valid URI`);
}

/** Returns a URI for messages: without its user, and without its query, which may have secrets, too. */
function withoutSecrets(uri: string): string {
  return withoutCredentials(uri).replace('***@', '').replace(/\?.*$/s, '');
}
