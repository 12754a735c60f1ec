import { execFileSync } from 'node:child_process';

/** Scripts of ours and of asynq need it. */
const OLDEST = [6, 2] as const;

/** Also Valkey's own numbers are above it. @throws Error - the program is too old, or no Redis. */
export function requireRecentRedis(program: string): void {
  const said = execFileSync(program, ['--version'], { encoding: 'utf8' }).trim();
  const [, major = 0, minor = 0] = (/v=(\d+)\.(\d+)/.exec(said) ?? []).map(Number);
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) return;
  throw new Error(`The tests need Redis ${OLDEST.join('.')} or later, or Valkey. ${program} is '${said}'`);
}
