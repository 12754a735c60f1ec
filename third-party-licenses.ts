import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Options } from 'tsup';

type Plugin = NonNullable<Options['esbuildPlugins']>[number];

const FILE = 'THIRD-PARTY-LICENSES';

/** Folder of each bundled package → the files of it that are bundled. Shared by all builds of one run. */
const bundled = new Map<string, Set<string>>();

/** Lists the packages that esbuild bundles, and writes the licence of each to {@link FILE}, beside what it builds. */
export const thirdPartyLicenses: Plugin = {
  name: 'third-party-licenses',
  setup(build) {
    build.initialOptions.metafile = true;
    build.onEnd(({ metafile }) => {
      for (const file of Object.keys(metafile?.inputs ?? {})) addBundledFile(file);
      const folder = build.initialOptions.outdir ?? '';
      const licences = [...bundled.keys()].sort().map(section);
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, FILE), licences.join(`\n${'='.repeat(80)}\n\n`));
    });
  },
};

/** Notes that a file of a package, by its path, is bundled. */
export function addBundledFile(file: string): void {
  const [, folder] = /(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(file) ?? [];
  if (folder === undefined) return;
  const files = bundled.get(folder) ?? new Set();
  bundled.set(folder, files.add(file));
}

function section(folder: string): string {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Record<string, string>;
  const { name = '', version = '', license = '' } = manifest;
  return `${name} ${version}, ${license}\n\n${licenceText(folder, license)}\n`;
}

/** The licence file of the package, or else the notices at the top of its bundled files. */
function licenceText(folder: string, license: string): string {
  const licenceFile = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  if (licenceFile !== undefined) return readFileSync(join(folder, licenceFile), 'utf8').trim();
  const notices = new Set([...(bundled.get(folder) ?? [])].sort().map(leadingComment));
  notices.delete('');
  if (notices.size === 0) throw new Error(`${folder} (${license}) has neither a licence file nor a notice`);
  const apache = license.includes('Apache-2.0') ? '\n\nThe Apache License 2.0 is in the file LICENSE.' : '';
  return [...notices].join('\n\n') + apache;
}

function leadingComment(file: string): string {
  const [comment] = /^(?:\/\/.*\n)+/.exec(readFileSync(file, 'utf8')) ?? [''];
  return comment.replaceAll(/^\/\/ ?/gm, '').trim();
}
