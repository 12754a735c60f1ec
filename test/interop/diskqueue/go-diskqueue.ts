import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { LARGEST_MESSAGE, type OpenOriginal, type Original } from './original.ts';

const MODULE = 'github.com/nsqio/go-diskqueue';
const DRIVER = fileURLToPath(new URL('driver', import.meta.url));

/** Builds the driver in a folder of its own, where it leaves what Go adds to a module. */
export function buildDriver(): { readonly folder: string; readonly program: string } {
  const folder = mkdtempSync(join(tmpdir(), 'diskqueue-driver-'));
  cpSync(DRIVER, folder, { recursive: true });
  const go = (...args: string[]): void => {
    execFileSync('go', args, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
  };
  const { ESCAPEMENT_DISKQUEUE_PATH: path, ESCAPEMENT_DISKQUEUE_VERSION: version = 'v1.1.0' } = process.env;
  if (path === undefined) go('get', `${MODULE}@${version}`);
  else go('mod', 'edit', `-require=${MODULE}@v0.0.0`, `-replace=${MODULE}=${path}`);
  go('build', '-mod=mod', '-o', 'driver', '.');
  return { folder, program: join(folder, 'driver') };
}

/** One queue of the original, in a process of its own. */
export function openerOf(program: string): OpenOriginal {
  return (folder, maxBytesPerFile) => Promise.resolve(openProcess(program, folder, maxBytesPerFile));
}

function openProcess(program: string, folder: string, maxBytesPerFile: number): Original {
  const args = [folder, 'q', String(maxBytesPerFile), String(LARGEST_MESSAGE)];
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'ignore'] });
  const ended = once(child, 'exit');
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ask = async (line: string): Promise<string> => {
    child.stdin.write(`${line}\n`);
    const answer = await lines.next();
    if (answer.done === true || answer.value.startsWith('error'))
      throw new Error(`${line}: ${String(answer.value)}`);
    return answer.value;
  };
  return {
    put: async (message) => {
      await ask(`put ${Buffer.from(message).toString('base64')}`);
    },
    receive: async () => {
      const answer = await ask('receive');
      return answer === 'none' ? undefined : Buffer.from(answer.slice('message '.length), 'base64');
    },
    depth: async () => Number((await ask('depth')).slice('depth '.length)),
    empty: async () => {
      await ask('empty');
    },
    close: async () => {
      await ask('close');
      await ended;
    },
  };
}
