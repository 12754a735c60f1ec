/** Builds the page of the dashboard (src/dashboard/page), and puts it into the package. */
import { basename, extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build, type BuildOptions, type Metafile } from 'esbuild';
import type { Options } from 'tsup';
import { addBundledFile } from './third-party-licenses.ts';

/** A file of the page. */
export interface PageAsset {
  /** `index.html`, or a name with the hash of the content. */
  readonly name: string;
  /** For the header `content-type`. */
  readonly type: string;
  readonly gzipped: Uint8Array;
}

type Plugin = NonNullable<Options['esbuildPlugins']>[number];

const page = (name: string): string =>
  fileURLToPath(new URL(`./src/dashboard/page/${name}`, import.meta.url));

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
};

/** How the page and the stand-alone wheels are bundled. */
const PAGE_OPTIONS = {
  bundle: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  charset: 'utf8',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  legalComments: 'none',
  logLevel: 'silent',
} as const satisfies BuildOptions;

/** Bundles, and compresses every file. */
export async function buildPage(): Promise<PageAsset[]> {
  const { assets } = await bundle();
  return assets;
}

async function bundle(): Promise<{ assets: PageAsset[]; metafile: Metafile }> {
  const output = { entryNames: '[name]-[hash]', outdir: 'out', write: false } as const;
  const [main, early] = await Promise.all([
    build({
      ...PAGE_OPTIONS,
      ...output,
      entryPoints: [page('main.tsx'), page('page.css')],
      splitting: true,
      chunkNames: '[name]-[hash]',
      metafile: true,
    }),
    // A classic script, which runs before anything is painted.
    build({ ...PAGE_OPTIONS, ...output, entryPoints: [page('early-theme.ts')], format: 'iife' }),
  ]);
  const files = [...main.outputFiles, ...early.outputFiles].map(({ path, contents }) =>
    asset(basename(path), contents),
  );
  const named = (start: string): string => files.find(({ name }) => name.startsWith(start))?.name ?? '';
  const html = indexHtml(named('early-theme-'), named('main-'), named('page-'));
  return { assets: [asset('index.html', Buffer.from(html)), ...files], metafile: main.metafile };
}

function asset(name: string, contents: Uint8Array): PageAsset {
  const type = TYPES[extname(name)] ?? 'text/html; charset=utf-8';
  return { name, type, gzipped: gzipSync(contents, { level: 9 }) };
}

/** Relative addresses, because the page may be under any prefix; nothing inline, because of its content security policy. */
function indexHtml(theme: string, main: string, css: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>Dashboard</title>
<link rel="icon" href="${ICON}">
<script src="${theme}"></script>
<link rel="stylesheet" href="${css}">
<script type="module" src="${main}"></script>
</head>
<body>
<div id="root"></div>
<noscript>This page needs JavaScript.</noscript>
</body>
</html>
`;
}

/** Of the dashboard and of the documentation. */
export const ICON = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="#5b5bd6" stroke-width="2.2">' +
    '<circle cx="12" cy="12" r="9" stroke-dasharray="4.2 2.87"/><circle cx="12" cy="12" r="5.2"/><path d="M12 12V7"/></svg>',
)}`;

/** Replaces this module in the package by the built files, so that a program that bundles the package again takes them along. */
export const inlinePage: Plugin = {
  name: 'inline-page',
  setup(outer) {
    outer.onLoad({ filter: /[\\/]build-page\.ts$/ }, async () => {
      const { assets, metafile } = await bundle();
      Object.keys(metafile.inputs).forEach(addBundledFile);
      return { contents: moduleOf(assets), loader: 'js' };
    });
  },
};

function moduleOf(assets: readonly PageAsset[]): string {
  const rows = assets.map(({ name, type, gzipped }) => {
    return JSON.stringify([name, type, Buffer.from(gzipped).toString('base64')]);
  });
  return `import { Buffer } from 'node:buffer';
const FILES = [
${rows.join(',\n')}
];
export function buildPage() {
  return Promise.resolve(FILES.map(([name, type, base64]) => ({ name, type, gzipped: Buffer.from(base64, 'base64') })));
}
`;
}

/** The wheels as one HTML file that needs nothing else: a timer of this library runs in it. */
export async function buildWheelPage(): Promise<string> {
  const { outputFiles } = await build({
    ...PAGE_OPTIONS,
    entryPoints: ['tsx', 'css'].map((type) =>
      fileURLToPath(new URL(`./tools/wheel-demo/wheel-demo.${type}`, import.meta.url)),
    ),
    outdir: 'out',
    write: false,
  });
  const file = (end: string): string => outputFiles.find(({ path }) => path.endsWith(end))?.text ?? '';
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>A timer in your browser, and its wheels</title>
<style>${file('.css')}</style>
</head>
<body>
<div id="root"></div>
<script type="module">${file('.js').replaceAll('</script', '<\\/script')}</script>
</body>
</html>
`;
}
