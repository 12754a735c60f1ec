import { execFile } from 'node:child_process';
import { mkdtempSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** What Debian's source package of Node 20 is downloaded from: the release that has it. */
const DEBIAN_SOURCE = 'deb-src http://deb.debian.org/debian trixie main\n';
/** The release of Node that it is. */
const DEBIAN_RELEASE = '20';
/** The release that runs. */
const running = process.versions.node.replace(/\..*/, '');
/** Longest wait for the package, in milliseconds: 20 MB, and a list of 10 MB. */
const DOWNLOAD_MS = 300_000;

/** Node's own tests, and what they share. */
const FILES = [
  'src/node_version.h',
  'test/common',
  'test/parallel/test-timers*',
  'test/sequential/test-timers*',
];

/** A folder with Node's sources, or why there is none. */
export type NodeSource =
  | { readonly folder: string; readonly remove: () => void; readonly leftOut?: undefined }
  | { readonly leftOut: string };

/**
 * The sources of Node, of the release that runs: those in the folder that `NODE_SOURCE` names, or else Debian's package,
 * which apt downloads and verifies, with settings of its own: the system's are left alone.
 *
 * @throws Error - what `NODE_SOURCE` names has no such tests, or what was downloaded cannot be unpacked.
 */
export async function findNodeSource(): Promise<NodeSource> {
  const given = process.env['NODE_SOURCE'] ?? '';
  if (given !== '') return sourceIn(resolve(given), () => undefined);
  if (running !== DEBIAN_RELEASE) {
    return { leftOut: `Debian has the sources of Node ${DEBIAN_RELEASE}, and this is Node ${running}` };
  }
  const folder = mkdtempSync(join(tmpdir(), 'node-source-'));
  const remove = (): void => {
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await download(folder);
  } catch (error) {
    remove();
    return { leftOut: `apt-get could not download Debian's source package of Node: ${firstLines(error)}` };
  }
  return sourceIn(await unpack(folder), remove);
}

function sourceIn(folder: string, remove: () => void): NodeSource {
  const header = readFileSync(join(folder, 'src/node_version.h'), 'utf8');
  const release = /NODE_MAJOR_VERSION (\d+)/.exec(header)?.[1];
  if (release === running) return { folder, remove };
  remove();
  return { leftOut: `the sources are those of Node ${release ?? '?'}, and this is Node ${running}` };
}

async function download(folder: string): Promise<void> {
  const list = join(folder, 'sources.list');
  writeFileSync(list, DEBIAN_SOURCE);
  mkdirSync(join(folder, 'lists/partial'), { recursive: true });
  mkdirSync(join(folder, 'cache/archives/partial'), { recursive: true });
  const settings = {
    'Dir::Etc::SourceList': list,
    'Dir::Etc::SourceParts': '/dev/null',
    'Dir::State::Lists': join(folder, 'lists'),
    'Dir::Cache': join(folder, 'cache'),
    // The user of apt's own may not write to a folder of ours.
    'APT::Sandbox::User': 'root',
  };
  const options = Object.entries(settings).map(([name, value]) => `-o${name}=${value}`);
  const limits = { cwd: folder, timeout: DOWNLOAD_MS };
  await run('apt-get', [...options, '--error-on=any', 'update'], limits);
  await run('apt-get', [...options, 'source', '--download-only', 'nodejs'], limits);
}

/** @returns the folder in which the sources are. */
async function unpack(folder: string): Promise<string> {
  const archive = readdirSync(folder).find((name) => name.endsWith('.orig.tar.xz'));
  if (archive === undefined)
    throw new Error(`no archive of Node's sources among ${readdirSync(folder).join(', ')}`);
  const target = join(folder, 'unpacked');
  mkdirSync(target);
  const patterns = FILES.map((file) => `*/${file}`);
  await run('tar', [
    '-xf',
    join(folder, archive),
    '-C',
    target,
    '--strip-components=1',
    '--wildcards',
    ...patterns,
  ]);
  return target;
}

/** What apt prints first tells most. */
function firstLines(error: unknown): string {
  return String(error).split('\n').slice(0, 4).join(' ');
}
